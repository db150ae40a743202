//! The files that TLS with a collector needs.

use std::{
    fmt::{self, Display},
    fs,
};

use super::{Names, SignalVariables, first};
use crate::{
    TelemetryError,
    settings::variables::{Variables, bad},
};

/// Whom to trust and who to be, as the files had it at start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TlsFiles {
    /// Who may vouch for the collector; the system's authorities where not given.
    pub(crate) authorities: Option<Pem>,
    /// The certificate of this process and its key.
    pub(crate) identity: Option<(Pem, Pem)>,
}

/// A file's text, and the variable that named it.
#[derive(Clone, PartialEq)]
pub(crate) struct Pem {
    variable: &'static str,
    pub(crate) text: Vec<u8>,
}

// === impl TlsFiles ===

impl TlsFiles {
    pub(super) fn read(
        variables: &Variables<'_>,
        names: &SignalVariables,
    ) -> Result<Self, TelemetryError> {
        let certificate = Pem::read(variables, names.client_certificate)?;
        let key = Pem::read(variables, names.client_key)?;
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(alone), None) => return Err(alone.lacks(names.client_key)),
            (None, Some(alone)) => return Err(alone.lacks(names.client_certificate)),
        };
        Ok(Self {
            authorities: Pem::read(variables, names.certificate)?,
            identity,
        })
    }
}

// === impl Pem ===

impl Pem {
    fn read(variables: &Variables<'_>, names: Names) -> Result<Option<Self>, TelemetryError> {
        let Some((variable, path)) = first(variables, names) else {
            return Ok(None);
        };
        match fs::read(&path) {
            Ok(text) => Ok(Some(Self { variable, text })),
            Err(error) => Err(bad(variable, format!("cannot read {path:?}: {error}"))),
        }
    }

    /// That the file is not what it should be.
    pub(crate) fn refused(&self, reason: impl Display) -> TelemetryError {
        bad(self.variable, format!("the file cannot be used: {reason}"))
    }

    fn lacks(&self, [_, other]: Names) -> TelemetryError {
        bad(self.variable, format!("needs {other} beside it"))
    }
}

/// Leaves the text out, which may be a private key.
impl fmt::Debug for Pem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Pem").field(&self.variable).finish()
    }
}
