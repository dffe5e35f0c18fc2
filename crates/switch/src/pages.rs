//! [`SmallPages`]: no huge pages while packets travel.

use nix::sys::prctl;

/// While it lives, new memory of this process comes in small pages. For a huge one the kernel
/// clears two megabytes, half a millisecond, and may first have to move what is in their way; a
/// host only wants room for its first packet.
pub struct SmallPages {
    /// As it was before.
    before: bool,
}

impl SmallPages {
    /// From now on. Where the kernel does not allow it, runs are only less exact.
    #[must_use]
    pub fn new() -> Self {
        let before = prctl::get_thp_disable().unwrap_or(false);
        let _ = prctl::set_thp_disable(true);
        Self { before }
    }
}

impl Default for SmallPages {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        let _ = prctl::set_thp_disable(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_before_afterwards() {
        let before = prctl::get_thp_disable().unwrap();
        let small = SmallPages::new();
        assert!(prctl::get_thp_disable().unwrap());
        drop(small);
        assert_eq!(prctl::get_thp_disable().unwrap(), before);
    }
}
