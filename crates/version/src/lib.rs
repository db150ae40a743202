//! Version, commit and build of the programs, the same in all of them.

/// Version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Hash and date of the commit, or `unknown`.
pub const COMMIT: &str = env!("BUILD_COMMIT");

/// Target triple, such as `x86_64-unknown-linux-gnu`.
pub const TARGET: &str = env!("BUILD_TARGET");

/// Kind of build: `debug` or `release`.
pub const PROFILE: &str = env!("BUILD_PROFILE");

/// Version of the compiler, as `rustc --version` prints it.
pub const RUSTC: &str = env!("BUILD_RUSTC");

/// All of it in one line, as `--version` prints it after the program's name.
pub const LINE: &str = env!("BUILD_LINE");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_version_commit_and_build_in_one_line() {
        let hash = COMMIT.split(' ').next().unwrap();
        let short = hash.get(..9).unwrap_or(hash);
        for part in [VERSION, short, TARGET, PROFILE] {
            assert!(LINE.contains(part), "{part} is missing in {LINE}");
        }
        assert!(RUSTC.starts_with("rustc "), "{RUSTC}");
        assert!(!LINE.contains('\n'));
    }
}
