//! A table of floor, measured value, ratio and goal.

use std::{fmt, time::Duration};

/// A measured value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Quantity {
    Time(Duration),
    /// Calls per second.
    Rate(f64),
    Bytes(u64),
    Count(u64),
}

/// The condition that a measured value has to meet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// The value is at most this multiple of the floor.
    AtMost(f64),
    /// The value is at least this multiple of the floor.
    AtLeast(f64),
    /// The value is at most this much over the floor.
    Over(Duration),
    /// The value is at most this number of bytes, independent of the floor.
    Limit(u64),
    /// The value is at most this duration, independent of the floor.
    Within(Duration),
    /// The value is zero.
    None,
    /// No condition: the value is only reported.
    Known,
}

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) floor: Option<Quantity>,
    pub(crate) ours: Quantity,
    pub(crate) goal: Goal,
}

/// The rows measured so far.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

// === impl Quantity ===

impl Quantity {
    fn number(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Rate(rate) => rate,
            Self::Bytes(number) | Self::Count(number) => number as f64,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Time(time) if *time >= Duration::from_millis(500) => {
                format!("{:.2} s", time.as_secs_f64())
            }
            Self::Time(time) if *time < Duration::from_micros(100) => {
                format!("{:.1} µs", time.as_secs_f64() * 1e6)
            }
            Self::Time(time) => format!("{:.2} ms", time.as_secs_f64() * 1e3),
            Self::Rate(rate) => format!("{rate:.0}/s"),
            Self::Bytes(bytes) => format!("{:.1} MB", *bytes as f64 / 1e6),
            Self::Count(count) => count.to_string(),
        };
        f.pad(&text)
    }
}

// === impl Row ===

impl Row {
    /// Returns a row with a limit in bytes and without a floor.
    pub(crate) fn limited(name: impl Into<String>, bytes: u64, limit: u64) -> Self {
        Self {
            name: name.into(),
            floor: None,
            ours: Quantity::Bytes(bytes),
            goal: Goal::Limit(limit),
        }
    }

    fn ratio(&self) -> Option<f64> {
        let floor = self.floor?.number();
        (floor > 0.0).then(|| self.ours.number() / floor)
    }

    /// Returns whether the goal is reached, or `None` if there is no goal.
    fn reached(&self) -> Option<bool> {
        Some(match self.goal {
            Goal::AtMost(most) => self.ratio()? <= most,
            Goal::AtLeast(least) => self.ratio()? >= least,
            Goal::Over(most) => self.ours.number() <= self.floor?.number() + most.as_secs_f64(),
            Goal::Limit(most) => self.ours.number() <= most as f64,
            Goal::Within(most) => self.ours.number() <= most.as_secs_f64(),
            Goal::None => self.ours.number() == 0.0,
            Goal::Known => return None,
        })
    }

    fn goal(&self) -> String {
        match self.goal {
            Goal::AtMost(most) => format!("≤ {most:.2} ×"),
            Goal::AtLeast(least) => format!("≥ {least:.2} ×"),
            Goal::Over(most) => format!("≤ floor + {}", Quantity::Time(most)),
            Goal::Limit(most) => format!("≤ {}", Quantity::Bytes(most)),
            Goal::Within(most) => format!("≤ {}", Quantity::Time(most)),
            Goal::None => "none".to_owned(),
            Goal::Known => String::new(),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let floor = self.floor.map_or(String::new(), |floor| floor.to_string());
        let ratio = match (self.goal, self.floor) {
            (Goal::Over(_), Some(floor)) => {
                let over = (self.ours.number() - floor.number()) * 1e3;
                format!("{over:+.2} ms")
            }
            _ => self
                .ratio()
                .map_or(String::new(), |ratio| format!("{ratio:.2} ×")),
        };
        let verdict = match self.reached() {
            Some(true) => "ok",
            Some(false) => "MISS",
            None => "",
        };
        write!(
            f,
            "{:<50} {floor:>10} {:>10} {ratio:>10}   {:<17} {verdict}",
            self.name,
            self.ours,
            self.goal()
        )
    }
}

// === impl Table ===

impl Table {
    /// Adds a row and prints it at once, because a run takes minutes.
    pub(crate) fn push(&mut self, row: Row) {
        if self.rows.is_empty() {
            let (floor, ours, ratio) = ("floor", "ours", "ratio");
            println!("{:<50} {floor:>10} {ours:>10} {ratio:>10}   goal", "");
        }
        println!("{}", row.to_string().trim_end());
        self.rows.push(row);
    }

    /// Returns the number of missed goals.
    pub(crate) fn misses(&self) -> usize {
        let missed = self.rows.iter().filter(|row| row.reached() == Some(false));
        missed.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(floor: u64, ours: u64, goal: Goal) -> Row {
        Row {
            name: "a row".to_owned(),
            floor: Some(Quantity::Time(Duration::from_millis(floor))),
            ours: Quantity::Time(Duration::from_millis(ours)),
            goal,
        }
    }

    #[test]
    fn decides_whether_a_goal_is_reached() {
        for (row, reached) in [
            (row(10, 5, Goal::AtMost(0.5)), Some(true)),
            (row(10, 6, Goal::AtMost(0.5)), Some(false)),
            (row(10, 9, Goal::AtLeast(0.8)), Some(true)),
            (row(10, 7, Goal::AtLeast(0.8)), Some(false)),
            (
                row(10, 11, Goal::Over(Duration::from_millis(2))),
                Some(true),
            ),
            (
                row(10, 13, Goal::Over(Duration::from_millis(2))),
                Some(false),
            ),
            (row(10, 13, Goal::Known), None),
            (row(0, 13, Goal::AtMost(1.0)), None),
        ] {
            assert_eq!(row.reached(), reached, "{row}");
        }
    }

    #[test]
    fn counts_and_shows_a_missed_goal() {
        let missed = row(10, 6, Goal::AtMost(0.5));
        let text = missed.to_string();
        for part in ["10.00 ms", "6.00 ms", "0.60 ×", "≤ 0.50 ×", "MISS"] {
            assert!(text.contains(part), "{text}");
        }
        let rows = vec![missed, row(10, 4, Goal::AtMost(0.5))];
        assert_eq!(Table { rows }.misses(), 1);
    }
}
