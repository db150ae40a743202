//! The runner's image: an otherwise empty root with the programs and directories that existing
//! deployments name, and the roots of trust that registries need.

use std::collections::BTreeMap;

use runner_devtools::failure;
use runner_image::{Config, Flavour, Image, Index, Platform, Tree};

use super::{binary::Program, origin::Origin, roots};

const HOME: &str = "home/nonroot";
const USER: u32 = 10001;
pub(crate) const TITLE: &str = "function-runner";
const DESCRIPTION: &str = "Runs KRM functions for Porch";
/// What an upgrade makes every node pull.
const MAX_SIZE: usize = 25_000_000;
const PASSWD: &str =
    "root:x:0:0::/root:/sbin/nologin\nnonroot:x:10001:10001::/home/nonroot:/sbin/nologin\n";

/// The programs of one platform.
pub(crate) struct Programs {
    pub(crate) runner: Program,
    /// It answers as the probe that deployments call.
    pub(crate) wrapper: Program,
}

/// `limited`: whether a program that is too large is an error.
pub(crate) fn index(
    programs: &[Programs],
    origin: &Origin,
    limited: bool,
) -> anyhow::Result<Index> {
    let labels = origin.labels(TITLE, DESCRIPTION);
    let images = programs.iter().map(|programs| {
        let image = image(programs, origin, &labels)?;
        let size = image.compressed_size();
        if limited && size > MAX_SIZE {
            return Err(failure(
                format!(
                    "the image for {} has {size} bytes, more than {MAX_SIZE}",
                    programs.runner.architecture.name()
                ),
                "find the dependency that it grew by: compare its cdx.json with an earlier one",
            ));
        }
        Ok(image)
    });
    let images = images.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Index::new(Flavour::Oci, images, &labels)?)
}

fn image(
    programs: &Programs,
    origin: &Origin,
    labels: &BTreeMap<String, String>,
) -> anyhow::Result<Image> {
    // What seldom changes is a layer of its own, which nodes keep.
    let base = Tree::new()
        .file("etc/passwd", 0o644, PASSWD)?
        .file("etc/ssl/certs/ca-certificates.crt", 0o644, roots::pem())?
        .directory(&format!("{HOME}/functions"), 0o755, USER)?
        .directory("tmp", 0o1777, 0)?;
    let probe = Tree::new().file(
        &format!("{HOME}/grpc-health-probe"),
        0o755,
        programs.wrapper.bytes.clone(),
    )?;
    let server = Tree::new().file(
        &format!("{HOME}/server"),
        0o755,
        programs.runner.bytes.clone(),
    )?;
    Ok(
        Image::builder(Platform::linux(programs.runner.architecture.name()))
            .created(origin.created())
            .config(Config {
                // A number: Kubernetes cannot tell of a name that it is not root.
                user: format!("{USER}:{USER}"),
                env: vec![format!("HOME=/{HOME}")],
                entrypoint: vec![format!("/{HOME}/server")],
                cmd: vec![format!("--functions=/{HOME}/functions")],
                working_dir: format!("/{HOME}"),
                labels: labels.clone(),
            })
            .layer(&base)?
            .layer(&probe)?
            .layer(&server)?
            .build()?,
    )
}

#[cfg(test)]
mod tests {
    use super::super::binary::Architecture;
    use super::*;

    fn programs() -> [Programs; 2] {
        [Architecture::Amd64, Architecture::Arm64].map(|architecture| {
            let program = |text: &[u8]| Program {
                architecture,
                bytes: text.to_vec(),
            };
            Programs {
                runner: program(b"runner"),
                wrapper: program(b"wrapper"),
            }
        })
    }

    #[test]
    fn the_same_programs_make_the_same_image() {
        let build = || index(&programs(), &Origin::of_nothing(), true).unwrap();
        assert_eq!(build().document().digest(), build().document().digest());
    }
}
