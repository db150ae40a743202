//! Finds the credentials for an image in docker's and podman's files.
//!
//! Secrets are held only here and in the authenticator: no type that holds one can be printed.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use docker_credential::{CredentialRetrievalError, DockerCredential};

mod docker_config;

use docker_config::{CredentialLocation, locate};

/// Timeout of a credential helper (10 s): one that calls a cloud API takes about a second, and one
/// that prompts a person never ends.
const HELPER_TIMEOUT: Duration = Duration::from_secs(10);
/// Key of Docker Hub in credential stores.
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// Docker config files, searched in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keychain {
    files: Vec<PathBuf>,
}

/// The result of a search for the credentials of an image.
pub(crate) struct FoundCredential {
    pub(crate) credential: Option<DockerCredential>,
    /// Description of the place where credentials were found, or why none were, for people.
    pub(crate) source: String,
}

/// The versions of all files of a keychain; `None` for a file that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileVersions(Vec<Option<Version>>);

/// Device, inode, modification time in seconds and nanoseconds, size.
type Version = (u64, u64, i64, i64, u64);

// === impl Keychain ===

impl Keychain {
    /// Creates a keychain of one file.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            files: vec![path.into()],
        }
    }

    /// Creates a keychain without files: all requests are anonymous.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a keychain of docker's and podman's files, following their environment variables.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::from_variables(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).map(PathBuf::from);
        let docker =
            path("DOCKER_CONFIG").or_else(|| path("HOME").map(|home| home.join(".docker")));
        let files = [
            docker.map(|directory| directory.join("config.json")),
            path("REGISTRY_AUTH_FILE"),
            path("XDG_RUNTIME_DIR").map(|directory| directory.join("containers/auth.json")),
        ];
        Self {
            files: files.into_iter().flatten().collect(),
        }
    }

    /// Returns the versions of all files. A mounted secret gets another inode when it changes.
    pub(crate) fn file_versions(&self) -> FileVersions {
        let version = |path: &PathBuf| {
            let file = fs::metadata(path).ok()?;
            Some((
                file.dev(),
                file.ino(),
                file.mtime(),
                file.mtime_nsec(),
                file.len(),
            ))
        };
        FileVersions(self.files.iter().map(version).collect())
    }

    /// Searches for the credentials of a repository.
    ///
    /// A file or helper that fails is named in the source, but is not an error: the image may be
    /// public.
    pub(crate) async fn find(&self, host: &str, repository: &str) -> FoundCredential {
        let keychain = self.clone();
        let (host, repository) = (host.to_owned(), repository.to_owned());
        let search = tokio::task::spawn_blocking(move || keychain.search(&host, &repository));
        match tokio::time::timeout(HELPER_TIMEOUT, search).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => FoundCredential::none("no credentials (the search for them failed)"),
            Err(_) => FoundCredential::none(format!(
                "no credentials (the credential helper took more than {HELPER_TIMEOUT:?})"
            )),
        }
    }

    fn search(&self, host: &str, repository: &str) -> FoundCredential {
        let mut problems = Vec::new();
        for path in &self.files {
            match search_file(path, host, repository) {
                Ok(Some(found)) => return found,
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        let files: Vec<_> = self
            .files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        FoundCredential::none(match (files.as_slice(), problems.as_slice()) {
            ([], _) => "no credentials".to_owned(),
            (files, []) => format!("no credentials (none for {host} in {})", files.join(", ")),
            (_, problems) => format!("no credentials ({})", problems.join("; ")),
        })
    }
}

// === impl FoundCredential ===

impl FoundCredential {
    fn none(source: impl Into<String>) -> Self {
        Self {
            credential: None,
            source: source.into(),
        }
    }
}

fn search_file(
    path: &Path,
    host: &str,
    repository: &str,
) -> Result<Option<FoundCredential>, String> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!("there is no {}", path.display()));
        }
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let location = locate(&text, host, repository)
        .map_err(|error| format!("{} is not a docker config: {error}", path.display()))?;
    let (key, source) = match location {
        CredentialLocation::None => return Ok(None),
        CredentialLocation::Auths(key) => {
            let source = format!("the credentials for {key} in {}", path.display());
            (key, source)
        }
        CredentialLocation::CredHelper { key, helper } => {
            let source = format!(
                "docker-credential-{helper} for {key}, named in {}",
                path.display()
            );
            (key, source)
        }
        CredentialLocation::CredsStore { helper } => {
            let key = if host == "docker.io" {
                DOCKER_HUB_KEY
            } else {
                host
            };
            let source = format!("docker-credential-{helper}, named in {}", path.display());
            (key.to_owned(), source)
        }
    };
    match docker_credential::get_credential_from_reader(text.as_slice(), &key) {
        Ok(credential) => Ok(Some(FoundCredential {
            credential: Some(credential),
            source,
        })),
        Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(None),
        // The output of a helper is not repeated: it may contain part of a secret.
        Err(CredentialRetrievalError::HelperFailure { stdout, .. })
            if stdout.contains("credentials not found") =>
        {
            Ok(None)
        }
        Err(CredentialRetrievalError::HelperFailure { .. }) => Err(format!("{source}: it failed")),
        Err(error) => Err(format!("{source}: {error}")),
    }
}

#[cfg(test)]
mod tests;
