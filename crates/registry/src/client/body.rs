//! Reads the bodies of responses up to a size limit.

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use serde::Deserialize;

use super::{ApiResponse, AttemptError, RequestContext};
use crate::transport::cause_chain;

/// Maximum number of bytes (16 KiB) read from the body of an error response.
const ERROR_LIMIT: usize = 16 << 10;
/// Maximum number of characters of an error text.
const MAX_ERROR_TEXT: usize = 200;

/// The reason why a response could not be read.
pub(super) enum ReadError {
    /// The body is larger than this limit in bytes.
    TooLarge(usize),
    /// The connection failed before the end of the body, for this cause.
    Interrupted(String),
}

/// Error documents of the distribution specification and of token servers.
#[derive(Deserialize)]
struct ErrorDocument {
    #[serde(default)]
    errors: Vec<ErrorEntry>,
    details: Option<String>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    message: Option<String>,
}

// === impl ReadError ===

impl ReadError {
    pub(super) fn into_attempt_error(
        self,
        context: &RequestContext<'_>,
        operation: &str,
    ) -> AttemptError {
        match self {
            Self::TooLarge(limit) => AttemptError::Permanent(
                context.unusable(format!("its {operation} is larger than {limit} bytes")),
            ),
            Self::Interrupted(cause) => AttemptError::Temporary {
                cause,
                retry_after: None,
            },
        }
    }
}

pub(super) async fn read(response: Response, limit: usize) -> Result<ApiResponse, ReadError> {
    let (status, url) = (response.status(), response.url().clone());
    let headers = response.headers().clone();
    let body = if status.is_success() {
        read_all(response, limit).await?
    } else {
        read_error(response).await
    };
    Ok(ApiResponse {
        status,
        headers,
        body,
        url,
        credentials: "no credentials".to_owned(),
    })
}

async fn read_all(mut response: Response, limit: usize) -> Result<Bytes, ReadError> {
    let announced = response.content_length();
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(ReadError::TooLarge(limit));
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| ReadError::Interrupted(cause_chain(&error)))?
    {
        if body.len() + chunk.len() > limit {
            return Err(ReadError::TooLarge(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Reads the start of an error response; a broken connection only ends the text.
async fn read_error(mut response: Response) -> Bytes {
    let mut body = BytesMut::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ERROR_LIMIT {
            body.truncate(ERROR_LIMIT);
            break;
        }
    }
    body.freeze()
}

/// Returns the error text of a response body as one short line after the separator, or nothing.
pub(super) fn error_text(body: &[u8], separator: &str) -> String {
    let text = match serde_json::from_slice::<ErrorDocument>(body) {
        Ok(document) => document
            .errors
            .into_iter()
            .map(
                |error| match error.message.filter(|message| !message.is_empty()) {
                    Some(message) => format!("{}: {message}", error.code),
                    None => error.code,
                },
            )
            .chain(document.details)
            .collect::<Vec<_>>()
            .join(", "),
        // HTML pages of proxies are of no use in a message.
        Err(_) => String::new(),
    };
    let text: String = text
        .chars()
        .filter(|character| !character.is_control())
        .take(MAX_ERROR_TEXT)
        .collect();
    if text.is_empty() {
        text
    } else {
        format!("{separator}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_error_bodies_to_one_line() {
        let body =
            br#"{"errors":[{"code":"DENIED","message":"not\nyours","detail":{}},{"code":"X"}]}"#;
        assert_eq!(error_text(body, ": "), ": DENIED: notyours, X");
        assert_eq!(
            error_text(br#"{"details":"incorrect username or password"}"#, ""),
            "incorrect username or password"
        );
        assert_eq!(error_text(b"<html>gateway</html>", ": "), "");
        assert_eq!(error_text(b"", ": "), "");
        let long = format!(r#"{{"errors":[{{"code":"{}"}}]}}"#, "x".repeat(5_000));
        assert_eq!(error_text(long.as_bytes(), "").len(), MAX_ERROR_TEXT);
    }
}
