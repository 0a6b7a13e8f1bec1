//! Compiles and loads a shim.

use std::ffi::{CString, OsString, c_void};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Included before each shim.
const HEADER: &str = include_str!("../shims/shim.h");

pub static CK: Shim = Shim::new("ck.c", include_str!("../shims/ck.c"), "libck-dev", Libraries::Known(&[]));
pub static NSYNC: Shim =
    Shim::new("nsync.c", include_str!("../shims/nsync.c"), "libnsync-dev", Libraries::Known(&["-lnsync"]));
pub static TBB: Shim =
    Shim::new("tbb.cpp", include_str!("../shims/tbb.cpp"), "libtbb-dev", Libraries::Known(&["-ltbb"]));
pub static ABSL: Shim = Shim::new(
    "absl.cpp",
    include_str!("../shims/absl.cpp"),
    "libabsl-dev",
    Libraries::Told("absl_synchronization"),
);

/// The libraries that a shim is linked with.
pub enum Libraries {
    /// Linked with these flags.
    Known(&'static [&'static str]),
    /// Linked with the flags that pkg-config reports for this module. Its parts are static
    /// libraries that depend on each other.
    Told(&'static str),
}

/// A few lines between a library and the benchmark.
pub struct Shim {
    file: &'static str,
    source: &'static str,
    /// The library's Debian package.
    package: &'static str,
    libraries: Libraries,
    loaded: OnceLock<Result<Library, String>>,
}

/// A loaded shim, which is never unloaded.
pub struct Library(*mut c_void);

// SAFETY: any thread may look up symbols.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    pub fn symbol(&self, name: &str) -> Result<*mut c_void, String> {
        let missing = || format!("its shim has no symbol {name}");
        let name = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the library is loaded, and the name is a C string.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() { Err(missing()) } else { Ok(symbol) }
    }
}

impl Shim {
    pub const fn new(
        file: &'static str,
        source: &'static str,
        package: &'static str,
        libraries: Libraries,
    ) -> Self {
        Self { file, source, package, libraries, loaded: OnceLock::new() }
    }

    /// Compiles and loads the shim, once.
    pub fn load(&self) -> Result<&Library, String> {
        self.loaded.get_or_init(|| self.compile_and_load()).as_ref().map_err(String::clone)
    }

    fn compile_and_load(&self) -> Result<Library, String> {
        let directory = Directory::make().map_err(|error| format!("no directory for its shim: {error}"))?;
        let library = self.compile(&directory.0)?;
        let path =
            CString::new(library.into_os_string().into_encoded_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the path is a C string, and the library's initializers are those of the peer.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            Err(format!("its shim cannot be loaded; {}", self.advice()))
        } else {
            Ok(Library(handle))
        }
    }

    /// Compiles the shim, and returns the path of the shared library.
    fn compile(&self, directory: &Path) -> Result<PathBuf, String> {
        let [source, header, library] = [self.file, "shim.h", "shim.so"].map(|name| directory.join(name));
        let written = fs::write(&source, self.source).and_then(|()| fs::write(&header, HEADER));
        written.map_err(|error| format!("its shim cannot be written: {error}"))?;
        let compiler = self.compiler();
        let output = Command::new(&compiler)
            .args(["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-include"])
            .args([&header, Path::new("-o"), &library, &source].map(|path| path.as_os_str()))
            .args(self.flags()?)
            .output();
        match output {
            Ok(output) if output.status.success() => Ok(library),
            Ok(_) => Err(self.advice()),
            Err(_) => Err(format!("there is no compiler `{}`; {}", compiler.display(), self.advice())),
        }
    }

    fn is_cpp(&self) -> bool {
        self.file.ends_with(".cpp")
    }

    fn compiler(&self) -> OsString {
        let (variable, usual) = if self.is_cpp() { ("CXX", "c++") } else { ("CC", "cc") };
        std::env::var_os(variable).filter(|compiler| !compiler.is_empty()).unwrap_or_else(|| usual.into())
    }

    fn flags(&self) -> Result<Vec<String>, String> {
        let module = match self.libraries {
            Libraries::Known(flags) => return Ok(flags.iter().copied().map(str::to_owned).collect()),
            Libraries::Told(module) => module,
        };
        let output = Command::new("pkg-config").args(["--cflags", "--libs", "--static", module]).output();
        let told = output.ok().filter(|output| output.status.success()).ok_or_else(|| self.advice())?;
        Ok(String::from_utf8_lossy(&told.stdout).split_whitespace().map(str::to_owned).collect())
    }

    /// The packages to install, with Debian's names.
    fn advice(&self) -> String {
        let compiler = if self.is_cpp() { "g++" } else { "gcc" };
        let more = if matches!(self.libraries, Libraries::Told(_)) { ", pkg-config" } else { "" };
        format!("install {}, {compiler}{more} (Debian's names)", self.package)
    }
}

/// A private temporary directory, removed when dropped.
struct Directory(PathBuf);

impl Directory {
    /// Makes a directory in which no other user can put a library. Fails if it already exists.
    fn make() -> io::Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("nearlock-shim-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
