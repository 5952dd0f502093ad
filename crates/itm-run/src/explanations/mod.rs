//! Explanations of trained models: what a report shows of single queries, pairs and words. They are made of scores, word maps and the truth, and
//! know neither the training nor the runs.

pub(crate) mod queries;
pub(crate) mod word_maps;
