//! `function-runner`: the gRPC service.

fn main() -> std::process::ExitCode {
    function_runner::main()
}
