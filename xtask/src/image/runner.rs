//! The runner's image: programs and directories at the paths that existing deployments use, and the
//! root certificates for registries. The root is otherwise empty.
//!
//! Deployments of 2025 and earlier use programs and files at the root (`/server`); symbolic links
//! there point to those in `/home/nonroot`.

use std::collections::BTreeMap;

use runner_devtools::failure;
use runner_image::{BadPath, Config, Flavour, Image, Index, Platform, Tree};

use super::{binary::Program, origin::Origin, roots};

const HOME: &str = "home/nonroot";
const USER: u32 = 10001;
pub(crate) const TITLE: &str = "function-runner";
const DESCRIPTION: &str = "Runs KRM functions for Porch";
/// Limit of the compressed image in bytes; every node pulls the image on an upgrade.
const MAX_SIZE: usize = 25_000_000;
/// Content of the exec map that older deployments pass with `--config`.
///
/// Their image contained a map with entries. This image has no function executables, so its map is
/// empty and every function goes to the next runtime.
const EXEC_MAP: &str = "functions: []\n";
/// Paths at the root of the image that deployments of 2025 and earlier use.
const ROOT_LINKS: [&str; 4] = ["config.yaml", "functions", "grpc-health-probe", "server"];
const PASSWD: &str =
    "root:x:0:0::/root:/sbin/nologin\nnonroot:x:10001:10001::/home/nonroot:/sbin/nologin\n";

/// The programs of one platform.
pub(crate) struct Programs {
    pub(crate) runner: Program,
    /// The wrapper, which also acts as the health probe that deployments call.
    pub(crate) wrapper: Program,
}

/// Creates the index of the runner's images.
///
/// With `limited`, an image larger than [`MAX_SIZE`] is an error.
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

/// Returns the files that seldom change; they are a separate layer, which nodes keep.
fn base() -> Result<Tree, BadPath> {
    let base = Tree::new()
        .file("etc/passwd", 0o644, PASSWD)?
        .file("etc/ssl/certs/ca-certificates.crt", 0o644, roots::pem())?
        .file(&format!("{HOME}/config.yaml"), 0o644, EXEC_MAP)?
        .directory(&format!("{HOME}/functions"), 0o755, USER)?
        .directory("tmp", 0o1777, 0)?;
    let mut links = ROOT_LINKS.iter();
    links.try_fold(base, |base, name| {
        base.symlink(name, &format!("{HOME}/{name}"))
    })
}

fn image(
    programs: &Programs,
    origin: &Origin,
    labels: &BTreeMap<String, String>,
) -> anyhow::Result<Image> {
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
                // A number, because Kubernetes cannot check for a user name that it is not root.
                user: format!("{USER}:{USER}"),
                env: vec![format!("HOME=/{HOME}")],
                entrypoint: vec![format!("/{HOME}/server")],
                cmd: vec![format!("--functions=/{HOME}/functions")],
                working_dir: format!("/{HOME}"),
                labels: labels.clone(),
            })
            .layer(&base()?)?
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
    fn links_lead_from_the_root_to_the_home_directory() {
        let base = base().unwrap();
        for name in ROOT_LINKS {
            let second = base.clone().symlink(name, "elsewhere");
            assert!(second.is_err(), "{name} is in the image");
        }
    }

    #[test]
    fn the_same_programs_make_the_same_image() {
        let build = || index(&programs(), &Origin::for_tests(), true).unwrap();
        assert_eq!(build().document().digest(), build().document().digest());
    }
}
