//! Prints the page of all locks, for `cargo xtask locks`.

fn main() {
    print!("{}", nearlock_lab::description::page());
}
