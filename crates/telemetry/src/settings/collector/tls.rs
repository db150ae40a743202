//! Reads the files needed for TLS to a collector.

use std::{
    fmt::{self, Display},
    fs,
};

use super::{SignalVariables, VariableNames, first_set};
use crate::{
    TelemetryError,
    settings::variables::{Variables, bad_value},
};

/// Contents of the TLS files, as read at start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TlsFiles {
    /// Root certificates that may sign the collector's certificate; default: those of the system.
    pub(crate) authorities: Option<Pem>,
    /// Client certificate and private key of this process.
    pub(crate) identity: Option<(Pem, Pem)>,
}

/// The text of a PEM file and the variable that named the file.
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
            (Some(alone), None) => return Err(alone.requires(names.client_key)),
            (None, Some(alone)) => return Err(alone.requires(names.client_certificate)),
        };
        Ok(Self {
            authorities: Pem::read(variables, names.certificate)?,
            identity,
        })
    }
}

// === impl Pem ===

impl Pem {
    fn read(
        variables: &Variables<'_>,
        names: VariableNames,
    ) -> Result<Option<Self>, TelemetryError> {
        let Some((variable, path)) = first_set(variables, names) else {
            return Ok(None);
        };
        match fs::read(&path) {
            Ok(text) => Ok(Some(Self { variable, text })),
            Err(error) => Err(bad_value(
                variable,
                format!("cannot read {path:?}: {error}"),
            )),
        }
    }

    /// Returns the error that the file cannot be used.
    pub(crate) fn unusable(&self, reason: impl Display) -> TelemetryError {
        bad_value(self.variable, format!("the file cannot be used: {reason}"))
    }

    fn requires(&self, [_, other]: VariableNames) -> TelemetryError {
        bad_value(self.variable, format!("{other} must be set, too"))
    }
}

/// Omits the text, which may be a private key.
impl fmt::Debug for Pem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Pem").field(&self.variable).finish()
    }
}
