//! Generates Rust from the public API's .proto files, which come out of the published `temporalio-protos` package,
//! and from our own internal ones beside this file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, error::Error, fs};

/// Packagers without cargo's registry can name the directory that holds `api_upstream`, `google` and `grpc`.
const DIRECTORY_OVERRIDE: &str = "EVERROW_TEMPORAL_PROTOS";

const PUBLIC: [&str; 3] = [
    "temporal/api/workflowservice/v1/service.proto",
    "temporal/api/operatorservice/v1/service.proto",
    "temporal/api/errordetails/v1/message.proto",
];
const INTERNAL: [&str; 5] = ["record.proto", "history.proto", "matching.proto", "visibility.proto", "admin.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={DIRECTORY_OVERRIDE}");
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=Cargo.toml");
    let upstream = match env::var_os(DIRECTORY_OVERRIDE) {
        Some(directory) => PathBuf::from(directory),
        None => published_directory()?,
    };
    let includes = [upstream.join("api_upstream"), upstream.join("google"), upstream.clone(), PathBuf::from("proto")];
    let internal = INTERNAL.map(|file| format!("everrow/{file}"));
    let files: Vec<&str> =
        PUBLIC.into_iter().chain(["google/rpc/status.proto"]).chain(internal.iter().map(String::as_str)).collect();

    let mut compiler = protox::Compiler::new(&includes)?;
    compiler.include_imports(true).open_files(files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // This encoding keeps the HTTP annotations, which a decoded prost descriptor set would drop.
    fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;

    let mut config = tonic_prost_build::Config::new();
    config.enable_type_names();
    tonic_prost_build::configure()
        .build_server(true)
        .build_client(true)
        .generate_default_stubs(true)
        .bytes(".")
        .codec_path("crate::codec::CheckedCodec")
        .extern_path(".temporal.api.history.v1.History", "crate::history::History")
        .include_file("all.rs")
        .compile_fds_with_config(compiler.file_descriptor_set(), config)?;
    Ok(())
}

/// Where cargo unpacked the package that Cargo.lock pins.
fn published_directory() -> Result<PathBuf, Box<dyn Error>> {
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(env::var("CARGO_MANIFEST_DIR")?)
        .output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "temporalio-protos")
        .and_then(|package| package["manifest_path"].as_str())
        .and_then(|manifest| Path::new(manifest).parent())
        .map(|package| package.join("protos"))
        .ok_or_else(|| "the package temporalio-protos is not in Cargo.lock".into())
}
