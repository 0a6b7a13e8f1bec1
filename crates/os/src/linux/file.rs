//! Reads small files onto the stack. Nothing here allocates.

use core::ffi::CStr;
use core::fmt::{Arguments, Write};
use core::str;

use super::c;

/// The longest name of a file. The names of containers' control groups fit.
const NAME_MAX: usize = 512;

/// Calls `read` with the text of the file of this name, and returns the result. `None` if the text
/// is not shorter than `TEXT_MAX`, or cannot be read.
pub fn with_file<const TEXT_MAX: usize, T>(name: Arguments<'_>, read: impl FnOnce(&str) -> T) -> Option<T> {
    let mut text = [0; TEXT_MAX];
    let len = read_named(name, &mut text)?;
    (len < TEXT_MAX).then(|| str::from_utf8(&text[..len]).ok().map(read))?
}

/// A separate function, so that its stack frame is gone when `read` runs.
#[inline(never)]
fn read_named(name: Arguments<'_>, into: &mut [u8]) -> Option<usize> {
    let mut path = Name { bytes: [0; NAME_MAX], len: 0 };
    path.write_fmt(name).ok()?;
    read_file(CStr::from_bytes_until_nul(&path.bytes).ok()?, into)
}

/// Reads the bytes of a file, as many as there are or as fit. Uses system calls directly: the
/// functions of the C library may end a cancelled thread in the middle of a lock.
fn read_file(path: &CStr, into: &mut [u8]) -> Option<usize> {
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
        assert_eq!(with_file::<4096, _>(format_args!("/nowhere"), |_| ()), None);
        assert_eq!(with_file::<4096, _>(format_args!("/proc/self"), |_| ()), None, "a directory");
        assert_eq!(with_file::<4096, _>(format_args!("{:600}", "long"), |_| ()), None);
        assert_eq!(with_file::<4096, _>(format_args!("/dev/zero"), |_| ()), None, "endless");
    }
}
