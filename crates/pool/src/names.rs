//! Identifiers of requests, pods and attempts to create a pod.

use std::{borrow::Borrow, fmt, sync::Arc};

/// Identifier of a request, unique for the lifetime of the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Identifier of one attempt to create a pod.
///
/// The answer of the API server counts only for the pod of its attempt, and not for an earlier or
/// later pod in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt(pub u64);

/// Name of a pod in its namespace, or of a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName(Arc<str>);

/// Uid of a pod, unique among all pods that ever had the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// Returns the name or uid as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text!(PodName);
text!(Uid);
