//! What the headers of our own share that have one length and a type in their first byte (`uet`,
//! `phost`, `pfabric`).

/// The eight bytes from `at` on, big-endian.
pub(crate) fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}

/// Their tests: of any kind, and of the first types that are unknown.
#[cfg(test)]
macro_rules! plain_header_tests {
    ($kinds:expr, $unknown:expr) => {
        #[test]
        fn what_is_no_header_is_refused() {
            assert_eq!(Repr::parse(&[1; LEN - 1]), Err(Error::Short(LEN - 1)));
            for unknown in $unknown {
                assert_eq!(Repr::parse(&[unknown; LEN]), Err(Error::Type(unknown)));
            }
        }

        proptest! {
            #[test]
            fn parse_undoes_to_bytes(message: u64, kind in $kinds) {
                let repr = Repr { message, kind };
                prop_assert_eq!(Repr::parse(&repr.to_bytes()), Ok(repr));
            }

            #[test]
            fn random_bytes_never_panic(
                bytes in proptest::collection::vec(0..12u8, 0..LEN + 16),
            ) {
                if let Ok(repr) = Repr::parse(&bytes) {
                    prop_assert_eq!(Repr::parse(&repr.to_bytes()), Ok(repr));
                }
            }
        }
    };
}

#[cfg(test)]
pub(crate) use plain_header_tests;
