//! `krm`: the command line for people who write packages and run functions over them.

fn main() -> std::process::ExitCode {
    krm::main()
}
