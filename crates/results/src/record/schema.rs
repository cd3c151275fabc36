//! The JSON Schema of a record, docs/record.schema.json: the types enter, what the file must say
//! leaves. `LINERATE_WRITE_SCHEMA=1 cargo test -p results schema` writes the file anew.

use std::{env, fs};

use serde_json::{Map, Value, json};

use super::{Record, SCHEMA};
use crate::fixtures;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record.schema.json");

/// The schema that the types have.
fn of_the_types() -> Value {
    let mut schema = schemars::schema_for!(Record);
    schema.insert("title".to_owned(), json!(format!("A record of Linerate, {SCHEMA}")));
    schema.to_value()
}

/// The schema that is published.
fn published() -> Value {
    serde_json::from_str(&fs::read_to_string(FILE).unwrap_or_default()).unwrap_or_default()
}

/// What is wrong with `value` by `schema`, a part of `root`. Knows the keywords that occur, and takes
/// offence at all others. Stricter than JSON Schema: a key that no schema names is wrong.
fn faults(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let Some(keywords) = schema.as_object() else { return vec![] };
    let check = |(keyword, wanted): (&String, &Value)| -> Vec<String> {
        let fault = |is_right: bool| -> Vec<String> {
            (!is_right)
                .then(|| format!("{path}: {keyword} is not {wanted}, but {value}"))
                .into_iter()
                .collect()
        };
        let each = |items: &[Value]| items.iter().map(|item| faults(root, item, value, path)).collect();
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => vec![],
            "$ref" => {
                let name = wanted.as_str().unwrap().trim_start_matches('#');
                faults(root, root.pointer(name).expect(name), value, path)
            }
            "const" => fault(value == wanted),
            "enum" => fault(wanted.as_array().unwrap().contains(value)),
            "type" => match wanted {
                Value::Array(types) => fault(types.iter().any(|name| is_a(name.as_str().unwrap(), value))),
                name => fault(is_a(name.as_str().unwrap(), value)),
            },
            "minimum" => fault(value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap())),
            "maximum" => fault(value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap())),
            "minItems" => {
                fault(value.as_array().is_none_or(|it| it.len() as u64 >= wanted.as_u64().unwrap()))
            }
            "maxItems" => {
                fault(value.as_array().is_none_or(|it| it.len() as u64 <= wanted.as_u64().unwrap()))
            }
            "anyOf" | "oneOf" => {
                let all: Vec<Vec<String>> = each(wanted.as_array().unwrap());
                if all.iter().any(Vec::is_empty) { vec![] } else { all.concat() }
            }
            "items" | "prefixItems" => {
                let schema_of = |index: usize| if wanted.is_array() { &wanted[index] } else { wanted };
                let items = value.as_array().into_iter().flatten().enumerate();
                items.flat_map(|(i, item)| faults(root, schema_of(i), item, &format!("{path}/{i}"))).collect()
            }
            "required" => {
                let missing = |key: &&Value| value.get(key.as_str().unwrap()).is_none();
                let keys = wanted.as_array().unwrap().iter().filter(missing);
                keys.map(|key| format!("{path}: {key} is missing")).collect()
            }
            "properties" | "additionalProperties" => members(root, keywords, keyword, value, path),
            unknown => vec![format!("{path}: the keyword {unknown} is not known here")],
        }
    };
    keywords.iter().flat_map(check).collect()
}

/// The faults of an object's members that `keyword` of `schema` is about.
fn members(
    root: &Value,
    schema: &Map<String, Value>,
    keyword: &str,
    value: &Value,
    path: &str,
) -> Vec<String> {
    let named = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    let of_member = |(key, member): (&String, &Value)| {
        let path = format!("{path}/{key}");
        match (named.and_then(|named| named.get(key)), others) {
            (Some(schema), _) if keyword == "properties" => faults(root, schema, member, &path),
            (None, Some(schema)) if keyword == "additionalProperties" => faults(root, schema, member, &path),
            (None, None) => vec![format!("{path}: no schema names it")],
            _ => vec![],
        }
    };
    value.as_object().into_iter().flatten().flat_map(of_member).collect()
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    }
}

/// What is wrong with `record` by the published schema.
fn faults_of(record: &Value) -> Vec<String> {
    let schema = published();
    faults(&schema, &schema, record, "")
}

/// Records of each strategy.
fn records() -> Vec<Record> {
    let mut records = fixtures::bench();
    records.extend(fixtures::oddities());
    records.extend(fixtures::searches());
    let scenario = fixtures::Scenario::default();
    records.extend([scenario.latency_test(), scenario.eventful_soak(), scenario.searched_ramp()]);
    records
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let expected = of_the_types();
    if env::var_os("LINERATE_WRITE_SCHEMA").is_some() {
        fs::write(FILE, format!("{expected:#}\n")).unwrap();
    }
    assert!(
        published() == expected,
        "docs/record.schema.json is not what the types of a record say: run \
         LINERATE_WRITE_SCHEMA=1 cargo test -p results schema"
    );
}

#[test]
fn records_follow_the_published_schema() {
    for record in records() {
        let faults = faults_of(&serde_json::to_value(&record).unwrap());
        assert!(faults.is_empty(), "{}: {faults:#?}", record.id);
    }
}

#[test]
fn what_is_no_record_does_not_follow_the_published_schema() {
    let record = serde_json::to_value(&records()[0]).unwrap();
    let wrong: [(&str, Value); 6] = [
        ("/schema", json!("linerate/run/2")),
        ("/status", json!("done")),
        ("/elapsed_s", json!("60 s")),
        ("/samples/0/directions/0/offered", json!(-1)),
        ("/directions/0/latency_ns", json!([[1, 2, 3]])),
        ("/tester", json!({ "engine": "xdp" })),
    ];
    for (place, value) in wrong {
        let mut record = record.clone();
        *record.pointer_mut(place).unwrap() = value;
        let faults = faults_of(&record);
        assert!(faults.iter().any(|fault| fault.starts_with(place)), "{place}: {faults:?}");
    }
    let mut unknown = record;
    unknown["surprise"] = json!(1);
    assert_eq!(faults_of(&unknown), ["/surprise: no schema names it"]);
}
