//! One static binary that turns any image's program into a gRPC function, answering to three names:
//!
//! ```text
//! wrapper-server --port 9446 -- ENTRYPOINT…   serves the function, as PID 1 of its pod
//! wrapper-server install DIR                  puts itself and its probe into DIR
//! wrapper-server hold                         waits to be ended
//! grpc-health-probe -addr HOST:PORT           asks a server for its health
//! cp -a SRC/. DST                             copies, where an image has no shell
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
            Ok(flags::Asked::Serve(flags)) => serve::main(flags),
            Ok(flags::Asked::Help) => {
                print!("{}", flags::HELP);
                ExitCode::SUCCESS
            }
            Ok(flags::Asked::Version) => {
                println!("wrapper-server {}", env!("CARGO_PKG_VERSION"));
                ExitCode::SUCCESS
            }
            Err(error) => complain(&error.to_string(), 2),
        },
    }
}

/// One clear line, and the exit code that goes with it.
fn complain(error: &str, code: u8) -> ExitCode {
    eprintln!("wrapper-server: {error}");
    ExitCode::from(code)
}
