//! `Debug` of types that show only a part of themselves.

/// Implements `Debug` for a type with fields that cannot or must not be shown: functions, locks,
/// secrets. It shows the named fields, or named values; `..` says that there are others.
///
/// ```text
/// debug_fields!(Predicate);
/// debug_fields!(FilesHandle { name, can_write, .. });
/// debug_fields!(Engine, engine, tools = engine.0.registry.len(), ..);
/// debug_fields!(Session, session, session.id());
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __debug_fields {
    ($type:ident) => {
        $crate::__debug_fields!(@ $type, _value, f => f
            .debug_struct(stringify!($type))
            .finish_non_exhaustive());
    };
    ($type:ident { $($field:ident),+, .. }) => {
        $crate::__debug_fields!($type, value, $($field = value.$field),+, ..);
    };
    ($type:ident { $($field:ident),+ }) => {
        $crate::__debug_fields!($type, value, $($field = value.$field),+);
    };
    ($type:ident, $value:ident, $($field:ident = $shown:expr),+, ..) => {
        $crate::__debug_fields!(@ $type, $value, f => f
            .debug_struct(stringify!($type))
            $(.field(stringify!($field), &$shown))+
            .finish_non_exhaustive());
    };
    ($type:ident, $value:ident, $($field:ident = $shown:expr),+ $(,)?) => {
        $crate::__debug_fields!(@ $type, $value, f => f
            .debug_struct(stringify!($type))
            $(.field(stringify!($field), &$shown))+
            .finish());
    };
    ($type:ident, $value:ident, $shown:expr $(,)?) => {
        $crate::__debug_fields!(@ $type, $value, f => f
            .debug_tuple(stringify!($type))
            .field(&$shown)
            .finish());
    };
    (@ $type:ident, $value:ident, $f:ident => $made:expr) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, $f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $value = self;
                $made
            }
        }
    };
}

pub use __debug_fields as debug_fields;
