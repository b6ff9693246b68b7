//! The keywords of a JSON Schema whose values contain schemas.

/// How the value of a keyword contains schemas.
pub enum Subschemas {
    /// It is a schema. Of older drafts, `items` may be a list of them.
    One,
    /// It is a list of schemas.
    List,
    /// It maps names to schemas.
    Named,
}

/// How the value of a keyword contains schemas, if it does. Other values are data, even if they look
/// like a schema.
pub fn subschemas(keyword: &str) -> Option<Subschemas> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Subschemas::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Subschemas::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
        | "properties" => Subschemas::Named,
        _ => return None,
    })
}
