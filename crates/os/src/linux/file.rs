//! Reads small files onto the stack. Nothing here allocates.

use core::ffi::CStr;
use core::fmt::{Arguments, Write};
use core::str;

use super::c;

/// The longest name of a file. The names of containers' control groups fit.
const NAME_MAX: usize = 512;

/// Reads the text of the file of this name. `None` if the text is not shorter than `into`, or
/// cannot be read.
#[inline(never)]
pub fn read<'a>(name: Arguments<'_>, into: &'a mut [u8]) -> Option<&'a str> {
    let mut path = Name { bytes: [0; NAME_MAX], len: 0 };
    path.write_fmt(name).ok()?;
    let len = read_bytes(CStr::from_bytes_until_nul(&path.bytes).ok()?, into)?;
    if len == into.len() { None } else { str::from_utf8(&into[..len]).ok() }
}

/// Reads the bytes of a file, as many as there are or as fit. Uses system calls directly: the
/// functions of the C library may end a cancelled thread in the middle of a lock.
fn read_bytes(path: &CStr, into: &mut [u8]) -> Option<usize> {
    if cfg!(miri) {
        // Miri has no such calls.
        return None;
    }
    // SAFETY: the path is a C string.
    let file = unsafe { c::syscall(c::SYS_openat, c::AT_FDCWD, path.as_ptr(), c::O_RDONLY | c::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut len = 0;
    let complete = loop {
        let rest = &mut into[len..];
        // SAFETY: the rest is writable, and its length is passed.
        let read = unsafe { c::syscall(c::SYS_read, file, rest.as_mut_ptr(), rest.len()) };
        match usize::try_from(read) {
            Ok(0) => break true,
            Ok(read) => len += read,
            Err(_) => break false,
        }
    };
    // SAFETY: opened above, and used by no other code.
    unsafe { c::syscall(c::SYS_close, file) };
    complete.then_some(len)
}

/// The name of a file, followed by a 0 byte.
struct Name {
    bytes: [u8; NAME_MAX],
    len: usize,
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).filter(|_| end < NAME_MAX).ok_or(core::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore)] // asks the kernel
    fn files_that_cannot_be_read_give_none() {
        let mut text = [0; 4096];
        assert_eq!(read(format_args!("/nowhere"), &mut text), None);
        assert_eq!(read(format_args!("/proc/self"), &mut text), None, "a directory");
        assert_eq!(read(format_args!("{:600}", "long"), &mut text), None);
        assert_eq!(read(format_args!("/dev/zero"), &mut text), None, "endless");
    }
}
