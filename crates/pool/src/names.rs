//! What requests, pods and attempts to start one are called.

use std::{borrow::Borrow, fmt, sync::Arc};

/// One request, for as long as the runner lives: an id is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// One attempt to create a pod. A token given to the pod is bound to it, so that an announcement
/// counts only for the pod it was meant for, not for an earlier or later one in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt(pub u64);

/// Name of a pod in its namespace, or of a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName(Arc<str>);

/// What the API server calls one pod, among all that ever had its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// The text itself.
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
