#![doc = include_str!("../README.md")]

pub mod command;
pub mod figure;
pub mod format;
pub mod html;
pub mod markdown;
pub mod plot;
pub mod table;
pub mod terminal;
