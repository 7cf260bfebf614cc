//! The languages of reports.
//!
//! Every word that the report itself says stands here in all of them, side by side: a label is a
//! method of [`Lang`], so that one without a translation does not compile. Names that a run brings
//! along (scenarios, topics, hosts) stay as they are, and so do numbers with their units.

mod bases;
mod causes;
mod charts;
mod commands;
mod compared;
mod conditions;
mod consequences;
mod disturbances;
mod effects;
mod figures;
mod files;
mod headlines;
mod kinds;
mod observations;
mod obstacles;
mod pages;
mod properties;
mod published;
mod remarks;
mod searches;
mod sentences;
mod tables;

pub(crate) use causes::of_check;

/// The language of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese, simplified.
    Zh,
}

impl Lang {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::En, Self::Zh];

    /// The name that command lines and pages use.
    pub const fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
        }
    }

    /// The language of that name.
    ///
    /// # Errors
    /// When there is none; the sentence lists those that there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|lang| lang.code() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|lang| lang.code()).collect();
            format!("languages are {}", known.join(" and "))
        })
    }
}

/// Labels: a method for each, with its text in all languages.
macro_rules! catalogue {
    ($($name:ident: $english:literal, $chinese:literal;)*) => {
        impl super::Lang {
            $(
                pub(in crate) const fn $name(self) -> &'static str {
                    match self {
                        Self::En => $english,
                        Self::Zh => $chinese,
                    }
                }
            )*
        }

        /// All of them, for tests.
        #[cfg(test)]
        pub(super) const ALL: &[(&str, &str)] = &[$(($english, $chinese)),*];
    };
}
use catalogue;

/// Statements as data, with their words in all languages: a match over all variants, so that one
/// without a translation does not compile. Figures that need a form are made between brackets.
macro_rules! statements {
    (
        $(#[$about:meta])*
        $name:ident($lang:ident, $type:ty);
        $($variant:pat_param =>
            [$($figure:ident = $value:expr;)*] $english:literal, $chinese:literal;)*
    ) => {
        impl super::Lang {
            $(#[$about])*
            pub fn $name(self, statement: &$type) -> String {
                let $lang = self;
                match statement {
                    $($variant => {
                        $(let $figure = $value;)*
                        match $lang {
                            super::Lang::En => format!($english),
                            super::Lang::Zh => format!($chinese),
                        }
                    })*
                }
            }
        }

        /// Texts of all of them, for tests.
        #[cfg(test)]
        pub(super) const TEXTS: &[(&str, &str)] = &[$(($english, $chinese)),*];

        /// Their names, for tests.
        #[cfg(test)]
        pub(super) const VARIANTS: &[&str] = &[$(stringify!($variant)),*];
    };
}
use statements;

/// Texts of all statements, for tests.
#[cfg(test)]
pub(crate) fn statement_texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = [
        bases::TEXTS,
        causes::TEXTS,
        commands::TEXTS,
        conditions::TEXTS,
        consequences::TEXTS,
        effects::TEXTS,
        figures::TEXTS,
        headlines::TEXTS,
        kinds::TEXTS,
        observations::TEXTS,
        obstacles::TEXTS,
        properties::TEXTS,
        remarks::TEXTS,
    ];
    all.into_iter().flatten().copied()
}

/// Patterns of all statements, for tests.
#[cfg(test)]
pub(crate) fn statement_variants() -> impl Iterator<Item = &'static str> {
    let all = [
        bases::VARIANTS,
        causes::VARIANTS,
        commands::VARIANTS,
        conditions::VARIANTS,
        consequences::VARIANTS,
        effects::VARIANTS,
        figures::VARIANTS,
        headlines::VARIANTS,
        kinds::VARIANTS,
        observations::VARIANTS,
        obstacles::VARIANTS,
        properties::VARIANTS,
        remarks::VARIANTS,
    ];
    all.into_iter().flatten().copied()
}

/// All labels, for tests.
#[cfg(test)]
pub(super) fn labels() -> impl Iterator<Item = (&'static str, &'static str)> {
    [pages::ALL, charts::ALL, files::ALL, tables::ALL, compared::ALL].into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_names() {
        for lang in Lang::ALL {
            assert_eq!(Lang::parse(lang.code()), Ok(lang));
        }
        assert_eq!(Lang::parse("de"), Err("languages are en and zh".to_owned()));
    }

    #[test]
    fn labels_are_translated() {
        // Terms that Chinese engineers also write in Latin letters.
        let same = ["Broker", "Broker（RSS）"];
        for (english, chinese) in labels() {
            let is_chinese = chinese.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            assert!(is_chinese || same.contains(&chinese), "{english}: {chinese}");
            assert!(english.is_ascii() || english.starts_with('–'), "{english}");
        }
    }
}
