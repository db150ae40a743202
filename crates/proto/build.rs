//! Compiles the `.proto` files without `protoc` and keeps the descriptor set for reflection.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

const FILES: &[&str] = &[
    "evaluator/evaluator.proto",
    "announce/announce.proto",
    "grpc/health/v1/health.proto",
    "krm/status/v1/status.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // `Bytes` shares the receive buffer: a resource list is never copied out of it.
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
