//! The initialisation at start-up happens before `main`, however the library is linked.
//!
//! The kernel tells whether it has happened: it refuses `MEMBARRIER_CMD_PRIVATE_EXPEDITED` to a
//! process that has not registered. The tests of shared objects and static libraries need a C
//! compiler, `cc`.

#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nearlock_core::near::mutex::NearMutex;
use nearlock_core::raw::RawTryLock;
use nearlock_os::Os;

fn is_registered() -> bool {
    // SAFETY: the command has no conditions.
    unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0 }
}

/// Whether the kernel has the call at all.
fn is_known() -> bool {
    // SAFETY: as above.
    let commands = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) };
    commands > 0 && commands & i64::from(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0
}

/// Whether this machine has the tools that built this test. A guest to which the test was copied
/// has not.
fn can_build() -> bool {
    let has_cargo = Path::new(env!("CARGO")).exists();
    if !has_cargo {
        println!("not tried: there is no {}", env!("CARGO"));
    }
    has_cargo
}

/// Builds the library as an example of this package, apart from the build of the tests. Returns the
/// path of the library.
fn library(file: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linked");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "nearlock-os", "--example", "linked", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .status();
    assert!(built.expect("cargo").success());
    target.join("debug/examples").join(file)
}

/// Compiles the C program with these arguments, runs it, and returns what it prints.
fn said_by_program(name: &str, compiler: &[&str], arguments: &[&Path]) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/start/program.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).expect("a folder for programs");
    let program = folder.join(name);
    let compiled =
        Command::new("cc").arg("-o").arg(&program).arg(source).args(compiler).status().expect("a C compiler");
    assert!(compiled.success());
    let output = Command::new(program).args(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("is text")
}

#[test]
fn a_binary_is_registered_before_main() {
    if !is_known() {
        println!("this kernel has no membarrier");
        return;
    }
    // No code of this process has used a lock yet.
    assert!(is_registered());
    let lock = NearMutex::<Os>::new();
    // SAFETY: it is never unlocked.
    assert!(unsafe { lock.try_lock(&()) });
}

#[test]
fn a_shared_object_registers_when_it_is_loaded_and_is_not_called_when_it_is_gone() {
    if is_known() && can_build() {
        let said = said_by_program("shared", &["-ldl", "-lpthread"], &[&library("liblinked.so")]);
        assert_eq!(said, "0 1\n");
    }
}

#[test]
fn a_static_library_registers_before_main() {
    if is_known() && can_build() {
        let library = library("liblinked.a");
        let library = library.to_str().expect("a path in UTF-8");
        let said =
            said_by_program("static", &["-DSTATIC", library, "-lpthread", "-ldl", "-lm", "-lgcc_s"], &[]);
        assert_eq!(said, "1 1\n");
    }
}
