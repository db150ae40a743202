//! Selects the runtimes in use: all except those that `--disable-runtimes` names.

use tracing::warn;

/// The runtimes in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enabled {
    pub(crate) exec: bool,
    pub(crate) pod: bool,
}

// === impl Enabled ===

impl Enabled {
    /// Returns all runtimes except those in a comma-separated list.
    ///
    /// An unknown name is probably a mistake and causes a warning.
    pub(crate) fn from_disabled(disabled: &str) -> Self {
        let mut enabled = Self {
            exec: true,
            pod: true,
        };
        for name in disabled
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            match name {
                "exec" => enabled.exec = false,
                "pod" => enabled.pod = false,
                _ => warn!(
                    name,
                    "--disable-runtimes names an unknown runtime; there are exec and pod"
                ),
            }
        }
        enabled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disables_the_named_runtimes() {
        assert_eq!(
            Enabled::from_disabled(""),
            Enabled {
                exec: true,
                pod: true
            }
        );
        assert_eq!(
            Enabled::from_disabled(" pod ,"),
            Enabled {
                exec: true,
                pod: false
            }
        );
        assert_eq!(
            Enabled::from_disabled("exec,pod,wasm"),
            Enabled {
                exec: false,
                pod: false
            }
        );
    }
}
