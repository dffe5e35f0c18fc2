//! The table of a transport's congestion rules, from which everything about them follows that is
//! not in their own files.

/// `rules!(VISIBILITY, lines)`. A line for each rule: its sentence, its name, its parameters if it
/// has any, and the type that is its state. Makes `RuleConfig` and `State`; of a file with a `Rule`
/// trait and a `Parameters` trait, which every type of parameters implements, `()` among them.
macro_rules! rules {
    (@params) => { &() };
    (@params $params:ident) => { $params };
    ($vis:vis, $(
        $(#[$about:meta])* $name:ident $(($params:ident: $type:ty))? => $rule:ty,
    )*) => {
        /// Which rule, and its parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum RuleConfig {
            $($(#[$about])* $name $(($type))?,)*
        }

        impl RuleConfig {
            /// Its parameters, whatever the rule.
            pub(super) fn params(&self) -> &dyn Parameters {
                match self {
                    $(Self::$name $(($params))? => $crate::rules::rules!(@params $($params)?),)*
                }
            }
        }

        /// The rule of one sender.
        #[derive(Clone, Copy, Debug)]
        $vis enum State {
            $($(#[$about])* $name($rule),)*
        }

        impl State {
            /// A rule before it has been told anything.
            #[must_use]
            $vis fn new(config: &RuleConfig) -> Self {
                match *config {
                    $(RuleConfig::$name $(($params))? => Self::$name(<$rule>::new($($params)?)),)*
                }
            }

            /// To ask it.
            #[must_use]
            $vis fn get(&self) -> &dyn Rule {
                match self {
                    $(Self::$name(rule) => rule,)*
                }
            }

            /// To tell it something.
            #[must_use]
            $vis fn get_mut(&mut self) -> &mut dyn Rule {
                match self {
                    $(Self::$name(rule) => rule,)*
                }
            }
        }
    };
}

pub(crate) use rules;
