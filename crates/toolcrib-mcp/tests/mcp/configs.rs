//! Shapes of configuration files in which servers are found: a title, the name of the file, its text.

use crate::files::reached_in;

/// Each server and each problem of every shape; a program is not started, and no URL is dialed.
#[test]
fn every_shape_of_a_file_is_read_as_its_product_means_it() {
    let shapes = include_str!("configs/shapes.txt").split("## ").skip(1).map(|shape| {
        let (title, shape) = shape.split_once('\n').unwrap();
        let (file, text) = shape.split_once('\n').unwrap();
        format!("## {title}\n{}\n", reached_in(file, &text.replace("BOM", "\u{feff}")).trim_end())
    });
    let shapes: Vec<String> = shapes.collect();
    assert!(shapes.len() >= 60, "{}", shapes.len());
    insta::assert_snapshot!("configs", shapes.concat());
}
