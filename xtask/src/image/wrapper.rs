//! The wrapper's image: one program under three names in an otherwise empty root.
//!
//! Pod templates copy the directory into function pods and call the probe there, so the probe is a
//! symbolic link inside the directory. `/bin/cp` is a link to the same program.

use std::collections::BTreeMap;

use runner_devtools::failure;
use runner_image::{Config, Flavour, Image, Index, Platform, Tree};

use super::{binary::Program, origin::Origin};

const DIRECTORY: &str = "home/nonroot/wrapper-server";
const USER: &str = "10001";
pub(crate) const TITLE: &str = "wrapper-server";
const DESCRIPTION: &str = "Turns the program of any image into a gRPC function";
/// Limit of the compressed image in bytes; every node pulls the image before its first function
/// runs.
const MAX_SIZE: usize = 4_000_000;

pub(crate) fn index(programs: &[Program], origin: &Origin) -> anyhow::Result<Index> {
    let labels = origin.labels(TITLE, DESCRIPTION);
    let images = programs
        .iter()
        .map(|program| image(program, origin, &labels));
    let images = images.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Index::new(Flavour::Oci, images, &labels)?)
}

fn image(
    program: &Program,
    origin: &Origin,
    labels: &BTreeMap<String, String>,
) -> anyhow::Result<Image> {
    let tree = Tree::new()
        .file(
            &format!("{DIRECTORY}/wrapper-server"),
            0o755,
            program.bytes.clone(),
        )?
        .symlink(&format!("{DIRECTORY}/grpc-health-probe"), "wrapper-server")?
        .symlink("bin/cp", &format!("../{DIRECTORY}/wrapper-server"))?;
    let image = Image::builder(Platform::linux(program.architecture.name()))
        .created(origin.created())
        .config(Config {
            user: USER.to_owned(),
            // Templates call `cp` by its bare name.
            env: vec!["PATH=/bin".to_owned()],
            entrypoint: vec![format!("/{DIRECTORY}/wrapper-server")],
            working_dir: "/".to_owned(),
            labels: labels.clone(),
            ..Config::default()
        })
        .layer(&tree)?
        .build()?;
    let size = image.compressed_size();
    if size > MAX_SIZE {
        return Err(failure(
            format!(
                "the image for {} has {size} bytes, more than {MAX_SIZE}",
                program.architecture.name()
            ),
            "find the dependency that it grew by: compare its cdx.json with an earlier one",
        ));
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::super::binary::Architecture;
    use super::*;

    fn programs(content: &[u8]) -> [Program; 2] {
        [Architecture::Amd64, Architecture::Arm64].map(|architecture| Program {
            architecture,
            bytes: content.to_vec(),
        })
    }

    #[test]
    fn the_same_programs_make_the_same_image() {
        let build = || index(&programs(b"program"), &Origin::for_tests()).unwrap();
        assert_eq!(build().document().digest(), build().document().digest());
    }

    #[test]
    fn rejects_an_image_that_is_too_large() {
        // Random bytes, which do not compress.
        let mut state = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(MAX_SIZE)
        .collect();
        let error = index(&programs(&noise), &Origin::for_tests())
            .unwrap_err()
            .to_string();
        assert!(error.contains("more than 4000000"), "{error}");
    }
}
