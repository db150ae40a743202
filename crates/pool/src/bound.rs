//! A bound on loops that are finite by design.

/// A counter that ends a loop which a defect would make endless.
///
/// The task that owns the pool serves every caller, so an endless loop would stop the whole runner.
pub(crate) struct Bound {
    what: &'static str,
    left: usize,
}

// === impl Bound ===

impl Bound {
    /// Returns a bound of `rounds` for the loop that `what` names in the log.
    pub(crate) fn new(what: &'static str, rounds: usize) -> Self {
        Self { what, left: rounds }
    }

    /// Returns whether another round may follow.
    ///
    /// Once the bound is exceeded, an error is logged and the loop must end; the remaining work is
    /// done with the next event.
    ///
    /// # Panics
    ///
    /// With debug assertions, if the loop exceeds its bound.
    pub(crate) fn admits(&mut self) -> bool {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return true;
        }
        tracing::error!("{} does not come to an end: this is a defect", self.what);
        debug_assert!(false, "{} does not come to an end", self.what);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "does not come to an end")]
    fn ends_a_loop_that_exceeds_its_rounds() {
        let mut bound = Bound::new("a loop", 2);
        assert!(bound.admits() && bound.admits());
        bound.admits();
    }
}
