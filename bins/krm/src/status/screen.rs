//! Shows successive frames: redrawn in place on a terminal, appended elsewhere.

use std::io::{self, Write};

const CLEAR: &str = "\x1b[2J";
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// The output for successive frames.
#[derive(Debug)]
pub(super) struct Screen {
    redraws: bool,
    begun: bool,
}

// === impl Screen ===

impl Screen {
    pub(super) fn terminal() -> Self {
        Self {
            redraws: true,
            begun: false,
        }
    }

    pub(super) fn appending() -> Self {
        Self {
            redraws: false,
            begun: false,
        }
    }

    /// Shows the next frame.
    pub(super) fn show(&mut self, picture: &str, to: &mut impl Write) -> io::Result<()> {
        // The terminal may have been resized.
        let height = terminal_size::terminal_size().map_or(usize::MAX, |(_, rows)| rows.0.into());
        self.show_within(height, picture, to)
    }

    fn show_within(&mut self, height: usize, picture: &str, to: &mut impl Write) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.begun, true);
        if !self.redraws {
            to.write_all(picture.as_bytes())?;
            return to.flush();
        }
        // Written at once, so that no partial frame is visible.
        let mut frame = String::with_capacity(picture.len() + 64);
        if first {
            frame.push_str(CLEAR);
            frame.push_str(HIDE_CURSOR);
        }
        frame.push_str(HOME);
        let lines: Vec<&str> = picture.lines().collect();
        // The last row stays free, because a newline in it would scroll.
        let room = height.saturating_sub(1).max(2);
        let shown = if lines.len() > room {
            room - 1
        } else {
            lines.len()
        };
        for line in &lines[..shown] {
            frame.push_str(line);
            frame.push_str(REST_OF_LINE);
            frame.push('\n');
        }
        if shown < lines.len() {
            let more = format!("… {} more lines", lines.len() - shown);
            frame.push_str(&more);
            frame.push_str(REST_OF_LINE);
            frame.push('\n');
        }
        frame.push_str(REST_OF_SCREEN);
        to.write_all(frame.as_bytes())?;
        to.flush()
    }

    /// Restores the cursor and leaves the last frame visible.
    pub(super) fn leave(&self, to: &mut impl Write) -> io::Result<()> {
        if self.redraws && self.begun {
            to.write_all(SHOW_CURSOR.as_bytes())?;
            to.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(screen: &mut Screen, height: usize, picture: &str) -> String {
        let mut to = Vec::new();
        screen.show_within(height, picture, &mut to).unwrap();
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn redraws_frames_in_place_on_a_terminal() {
        let mut screen = Screen::terminal();
        let first = shown(&mut screen, 24, "long line\nx\n");
        assert_eq!(
            first,
            "\x1b[2J\x1b[?25l\x1b[Hlong line\x1b[K\nx\x1b[K\n\x1b[J"
        );
        assert_eq!(shown(&mut screen, 24, "y\n"), "\x1b[Hy\x1b[K\n\x1b[J");
        let mut to = Vec::new();
        screen.leave(&mut to).unwrap();
        assert_eq!(to, SHOW_CURSOR.as_bytes());
    }

    #[test]
    fn truncates_frames_to_the_height_of_the_terminal() {
        let picture = "line\n".repeat(10);
        let frame = shown(&mut Screen::terminal(), 5, &picture);
        assert_eq!(frame.matches('\n').count(), 4, "{frame}");
        assert!(frame.contains("… 7 more lines"), "{frame}");
        let whole = shown(&mut Screen::terminal(), 11, &picture);
        assert_eq!(whole.matches("line").count(), 10, "{whole}");
    }

    #[test]
    fn appends_frames_unchanged_without_a_terminal() {
        let mut screen = Screen::appending();
        assert_eq!(shown(&mut screen, 2, "a\nb\nc\n"), "a\nb\nc\n");
        assert_eq!(shown(&mut screen, 2, "d\n"), "d\n");
        let mut to = Vec::new();
        screen.leave(&mut to).unwrap();
        assert_eq!(to, b"");
    }
}
