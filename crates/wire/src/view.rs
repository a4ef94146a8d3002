//! What all header views have in common.
//!
//! Vocabulary: a *view* is a buffer whose length `new_checked` has verified,
//! read and written by field names. Its order in each module: field ranges,
//! view, getters, setters, text form, tests.
//!
//! Limits: a view checks that its header is complete and that lengths within it
//! make sense, not that values are meaningful.

/// Why bytes are not the header that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The bytes end before the header does.
    #[error(
        "{header} header is cut short: it needs {needed_bytes} bytes, {available_bytes} are there; \
         capture with a larger snap length"
    )]
    TooShort {
        /// Name of the header.
        header: &'static str,
        /// Its length as far as known.
        needed_bytes: usize,
        /// Length of the buffer.
        available_bytes: usize,
    },
    /// A field has a value that this header cannot have.
    #[error("{header} header is not valid: {field} is {value}; check the offset it is read from")]
    Invalid {
        /// Name of the header.
        header: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
}

/// `Ok` if `bytes` is at least `needed_bytes` long.
pub(crate) fn require(
    bytes: &[u8],
    needed_bytes: usize,
    header: &'static str,
) -> Result<(), HeaderError> {
    let available_bytes = bytes.len();
    if available_bytes < needed_bytes {
        return Err(HeaderError::TooShort { header, needed_bytes, available_bytes });
    }
    Ok(())
}

/// Defines a view type over a buffer, with access to that buffer.
macro_rules! header_view {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<T>(T);

        impl<T: AsRef<[u8]>> $name<T> {
            /// The whole buffer, from the first byte of the header on.
            #[inline]
            pub fn as_bytes(&self) -> &[u8] {
                self.0.as_ref()
            }

            /// The buffer itself.
            #[inline]
            pub fn into_inner(self) -> T {
                self.0
            }
        }
    };
}

pub(crate) use header_view;
