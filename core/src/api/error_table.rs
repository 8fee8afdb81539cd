//! The properties of each kind of error and of each code of an error body. The rows are generated
//! (`generated/error_kinds.rs`); these macros turn them into types.

/// The closed list of kinds, the statuses of each kind, the kind of all other 5xx statuses, and the kind of the rest.
macro_rules! error_kinds {
    (
        kinds { $($kind:ident = $name:literal, $class:literal, retryable: $retryable:literal, $meaning:literal;)+ }
        statuses { $($($status:literal)|+ => $of_status:ident,)* }
        other_5xx { $server:ident }
        other { $other:ident }
    ) => {
        /// What went wrong. New kinds may be added.
        ///
        /// ```
        /// use gatewright::ErrorKind;
        ///
        /// let kind = ErrorKind::from_status(429);
        /// assert_eq!(kind, ErrorKind::RateLimit);
        /// assert_eq!((kind.name(), kind.class()), ("rate_limit", "RateLimitError"));
        /// assert!(kind.is_retryable());
        /// println!("{}", kind.meaning());
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $(#[doc = $meaning] $kind,)+
        }

        impl ErrorKind {
            /// Every kind.
            ///
            /// ```
            /// use gatewright::ErrorKind;
            ///
            /// let retried = ErrorKind::ALL.iter().filter(|kind| kind.is_retryable());
            /// let names: Vec<_> = retried.map(|kind| kind.name()).collect();
            /// assert!(names.contains(&"rate_limit") && !names.contains(&"not_found"));
            /// ```
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// The name in spec/errors.json: `rate_limit`.
            ///
            /// ```
            /// use gatewright::ErrorKind;
            ///
            /// assert_eq!(ErrorKind::RateLimit.name(), "rate_limit");
            /// ```
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// The class that Python and Node raise: `RateLimitError`.
            ///
            /// ```
            /// use gatewright::ErrorKind;
            ///
            /// assert_eq!(ErrorKind::RateLimit.class(), "RateLimitError");
            /// ```
            pub const fn class(self) -> &'static str {
                match self {
                    $(Self::$kind => $class,)+
                }
            }

            /// A human-readable description.
            ///
            /// ```
            /// use gatewright::ErrorKind;
            ///
            /// assert_eq!(ErrorKind::Cancelled.meaning(), "The caller cancelled the request.");
            /// ```
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$kind => $meaning,)+
                }
            }

            /// Whether a retry may help.
            ///
            /// ```
            /// use gatewright::ErrorKind;
            ///
            /// assert!(ErrorKind::RateLimit.is_retryable());
            /// assert!(!ErrorKind::NotFound.is_retryable());
            /// ```
            pub const fn is_retryable(self) -> bool {
                const RETRYABLE: &[bool] = &[$($retryable),+];
                RETRYABLE[self as usize]
            }

            /// The kind of an unsuccessful status.
            ///
            /// ```
            /// use gatewright::ErrorKind;
            ///
            /// assert_eq!(ErrorKind::from_status(404), ErrorKind::NotFound);
            /// assert_eq!(ErrorKind::from_status(599), ErrorKind::InternalServer);
            /// assert_eq!(ErrorKind::from_status(418), ErrorKind::Status);
            /// ```
            pub const fn from_status(status: u16) -> Self {
                match status {
                    $($($status)|+ => Self::$of_status,)*
                    500..=599 => Self::$server,
                    _ => Self::$other,
                }
            }
        }
    };
}

/// The codes of error bodies: code, type and status of the standard form; status, HTTP status and reason of the native
/// form; type of the messages form; description.
macro_rules! error_codes {
    ($(
        $constant:ident = $code:literal, $type:literal, $status:literal;
        $native_status:literal, $native_http:literal, $native_reason:expr; $messages_type:literal; $meaning:literal;
    )+) => {
        /// A code of an error body, in the standard, the native and the messages form.
        ///
        /// ```
        /// use gatewright::ErrorCode;
        ///
        /// let code = ErrorCode::ALL.iter().find(|code| code.code == "invalid_api_key").unwrap();
        /// assert_eq!((code.status, code.error_type), (401, "invalid_request_error"));
        /// assert_eq!((code.native_http, code.messages_type), (400, "authentication_error"));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct ErrorCode {
            /// `code` of the standard form.
            pub code: &'static str,
            /// `type` of the standard form.
            pub error_type: &'static str,
            /// HTTP status of the standard form.
            pub status: u16,
            /// `status` of the native form.
            pub native_status: &'static str,
            /// HTTP status, and `code`, of the native form.
            pub native_http: u16,
            /// `reason` in the details of the native form.
            pub native_reason: Option<&'static str>,
            /// `type` of the messages form, which has the HTTP status of the standard form.
            pub messages_type: &'static str,
            /// A human-readable description.
            pub meaning: &'static str,
        }

        impl ErrorCode {
            /// Every code.
            ///
            /// ```
            /// use gatewright::ErrorCode;
            ///
            /// let of_keys = ErrorCode::ALL.iter().filter(|code| code.status == 401);
            /// let codes: Vec<_> = of_keys.map(|code| code.code).collect();
            /// assert_eq!(codes, ["missing_api_key", "invalid_api_key"]);
            /// ```
            pub const ALL: &[Self] = &[$(Self::$constant),+];

            $(
                #[doc = $meaning]
                ///
                /// ```
                #[doc = concat!("let code = gatewright::ErrorCode::", stringify!($constant), ";")]
                #[doc = concat!("assert_eq!((code.code, code.status), (\"", $code, "\", ", $status, "));")]
                /// ```
                pub const $constant: Self = Self {
                    code: $code,
                    error_type: $type,
                    status: $status,
                    native_status: $native_status,
                    native_http: $native_http,
                    native_reason: $native_reason,
                    messages_type: $messages_type,
                    meaning: $meaning,
                };
            )+
        }
    };
}

pub(crate) use {error_codes, error_kinds};
