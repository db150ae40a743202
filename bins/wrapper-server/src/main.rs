//! A static binary that serves any image's program as a function over gRPC.
//!
//! The name under which the binary is started, and the first argument, select the action:
//!
//! ```text
//! wrapper-server --port 9446 -- ENTRYPOINT…   serves the function, as PID 1 of its pod
//! wrapper-server install DIR                  copies itself and its probe into DIR
//! wrapper-server hold                         waits for SIGTERM or SIGINT
//! grpc-health-probe -addr HOST:PORT           checks the health of a server
//! cp -a SRC/. DST                             copies files in an image without a shell
//! ```

mod announce;
mod copy;
mod entrypoint;
mod flags;
mod hold;
mod install;
mod probe;
mod serve;

use std::{ffi::OsString, path::Path, process::ExitCode};

use flags::Flags;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    match Path::new(&name).file_name().and_then(|name| name.to_str()) {
        Some("grpc-health-probe" | "grpc_health_probe") => probe::main(&words),
        Some("cp") => copy::main(&words),
        _ if words.first().is_some_and(|first| first == "install") => install::main(&words[1..]),
        _ if words == ["hold"] => hold::main(),
        _ => match Flags::parse(&words) {
            Ok(flags::Action::Serve(flags)) => serve::main(flags),
            Ok(flags::Action::Help) => {
                print!("{}", flags::HELP);
                ExitCode::SUCCESS
            }
            Ok(flags::Action::Version) => {
                println!("wrapper-server {}", runner_version::LINE);
                ExitCode::SUCCESS
            }
            Err(error) => print_error(&error.to_string(), 2),
        },
    }
}

/// Prints an error as one line and returns the exit code.
fn print_error(error: &str, code: u8) -> ExitCode {
    eprintln!("wrapper-server: {error}");
    ExitCode::from(code)
}
