//! [`SmallPages`]: no huge pages while packets travel.

use std::sync::{Mutex, PoisonError};

use nix::sys::prctl;

/// How many live, and whether huge pages were forbidden before the first.
static LIVING: Mutex<(usize, bool)> = Mutex::new((0, false));

/// While any lives, new memory of this process comes in small pages. For a huge one the kernel
/// clears two megabytes, half a millisecond, and may first have to move what is in their way; a
/// host only wants room for its first packet.
pub struct SmallPages(());

impl SmallPages {
    /// From now on. Where the kernel does not allow it, runs are only less exact.
    #[must_use]
    pub fn new() -> Self {
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        if living.0 == 0 {
            living.1 = prctl::get_thp_disable().unwrap_or(false);
            let _ = prctl::set_thp_disable(true);
        }
        living.0 += 1;
        Self(())
    }
}

impl Default for SmallPages {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        let mut living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
        living.0 -= 1;
        if living.0 == 0 {
            let _ = prctl::set_thp_disable(living.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_before_afterwards() {
        let before = prctl::get_thp_disable().unwrap();
        let [first, second] = [SmallPages::new(), SmallPages::new()];
        drop(first);
        assert!(prctl::get_thp_disable().unwrap());
        drop(second);
        assert_eq!(prctl::get_thp_disable().unwrap(), before);
    }
}
