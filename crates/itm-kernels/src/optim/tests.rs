use std::collections::BTreeMap;

use burn::backend::Flex;
use burn::tensor::Device;
use serde_json::Value;

use super::*;
use crate::tests::values;

/// The address of a tensor's values.
pub(in crate::optim) fn address<const D: usize>(x: Tensor<D>) -> *const u8 {
    let x = x.inner().try_into_primitive::<Flex>().unwrap();
    x.bytes().as_ptr()
}

#[derive(Module, Debug)]
struct Four {
    matrix: Param<Tensor<2>>,
    vector: Param<Tensor<1>>,
    late: Param<Tensor<2>>,
    idle: Param<Tensor<1>>,
}

fn floats(v: &Value) -> Vec<f32> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn golden() -> Value {
    serde_json::from_str(include_str!("../../tests/golden/optimizer.json")).unwrap()
}

fn tensor<const D: usize>(v: &Value, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(floats(v), shape), device)
}

fn four(start: &Value, device: &Device) -> Four {
    Four {
        matrix: Param::from_tensor(tensor(&start["matrix"], [3, 7], device)),
        vector: Param::from_tensor(tensor(&start["vector"], [19], device)),
        late: Param::from_tensor(tensor(&start["late"], [2, 2], device)),
        idle: Param::from_tensor(tensor(&start["idle"], [3], device)),
    }
}

fn gradients(m: &Four, g: &Value) -> GradientsParams {
    let (mut grads, device) = (GradientsParams::new(), Device::flex());
    grads.register(m.matrix.id, tensor(&g["matrix"], [3, 7], &device));
    grads.register(m.vector.id, tensor(&g["vector"], [19], &device));
    if !g["late"].is_null() {
        grads.register(m.late.id, tensor(&g["late"], [2, 2], &device));
    }
    grads
}

fn parameters(m: &Four) -> BTreeMap<&'static str, Vec<f32>> {
    [
        ("matrix", values(m.matrix.val())),
        ("vector", values(m.vector.val())),
        ("late", values(m.late.val())),
        ("idle", values(m.idle.val())),
    ]
    .into()
}

fn options(case: &Value) -> AdamOptions {
    AdamOptions {
        betas: [0, 1].map(|i| case["betas"][i].as_f64().unwrap()),
        epsilon: case["epsilon"].as_f64().unwrap(),
        weight_decay: case["decay"].as_f64().unwrap(),
        decayed: if case["matrices"] == true { DecayRule::Matrices(&[]) } else { DecayRule::All },
        form: AdamForm::PyTorch,
        clip: case["clip"].as_f64(),
    }
}

fn close(name: &str, got: &[f32], want: &Value) {
    let want = want.as_array().unwrap();
    assert_eq!(got.len(), want.len(), "{name}");
    for (got, want) in got.iter().zip(want) {
        let want = want.as_f64().unwrap();
        assert!((f64::from(*got) - want).abs() < 1e-6, "{name}: got {got}, want {want}");
    }
}

/// Five steps of PyTorch in double precision, from `tests/reference/optimizer.py`: parameters, moments, norms.
#[test]
fn golden_five_steps() {
    let golden = golden();
    let rate = golden["rate"].as_f64().unwrap();
    for (name, case) in golden["cases"].as_object().unwrap() {
        for device in [Device::flex(), Device::flex().autodiff()] {
            let mut module = four(&golden["start"], &device);
            let mut optimizer = AdamW::new(options(case));
            for (t, g) in golden["grads"].as_array().unwrap().iter().enumerate() {
                let grads = gradients(&module, g);
                let (next, norm) = optimizer.step(module, grads, rate);
                module = next;
                let want = case["norms"][t].as_f64().unwrap();
                assert!((norm / want - 1.0).abs() < 1e-12, "{name}: norm {norm}, want {want}");
            }
            for (part, got) in parameters(&module) {
                close(&format!("{name}: {part}"), &got, &case["values"][part]);
            }
            assert_eq!(parameters(&module)["idle"], floats(&golden["start"]["idle"]));
            let moments: Vec<_> = optimizer.moments().collect();
            for (part, m) in ["matrix", "vector", "late"].into_iter().zip(&moments) {
                let m = m.as_ref().unwrap();
                close(&format!("{name}: m of {part}"), &m.first, &case["first"][part]);
                close(&format!("{name}: v of {part}"), &m.second, &case["second"][part]);
                assert_eq!(m.steps, if part == "late" { 3 } else { 5 });
            }
            assert_eq!((moments.len(), &moments[3], optimizer.steps()), (4, &None, 5));
            assert_eq!(module.matrix.val().is_require_grad(), device.is_autodiff());
            assert_eq!(module.idle.val().is_require_grad(), device.is_autodiff());
        }
    }
}

/// Each option gives other values than the default, so no option is dead.
#[test]
fn every_option_acts() {
    let golden = golden();
    let cases = golden["cases"].as_object().unwrap();
    let plain = &cases["plain"]["values"];
    for (name, case) in cases {
        assert_eq!(
            &case["values"] == plain,
            ["plain", "wide clip"].contains(&name.as_str()),
            "{name}"
        );
    }
    assert_ne!(cases["decay"]["values"], cases["matrices"]["values"]);
}

/// A step works in place: the parameters and their moments keep their addresses.
#[test]
fn in_place_after_a_backward_pass() {
    for device in [Device::flex().autodiff(), Device::flex().autodiff().gradient_checkpointing()] {
        let mut module = four(&golden()["start"], &device);
        let mut optimizer = AdamW::new(AdamOptions::default());
        let step = |module: Four, optimizer: &mut AdamW| {
            let squares = module.matrix.val().powi_scalar(2).sum();
            let loss = squares + (module.vector.val() * 2.0).exp().sum();
            let grads = GradientsParams::from_grads(loss.backward(), &module);
            optimizer.step(module, grads, 0.01).0
        };
        module = step(module, &mut optimizer);
        let moments = |o: &AdamW| -> Vec<_> {
            let of = |x: &FloatTensor<Dispatch>| address(Tensor::<1>::from_dispatch(x.clone()));
            o.moments.iter().flatten().flat_map(|s| [of(&s.first), of(&s.second)]).collect()
        };
        let at = [address(module.matrix.val()), address(module.vector.val())];
        let (moments_at, before) = (moments(&optimizer), parameters(&module));
        module = step(module, &mut optimizer);
        assert_eq!([address(module.matrix.val()), address(module.vector.val())], at);
        assert_eq!(moments(&optimizer), moments_at);
        assert_ne!(parameters(&module), before);
    }
}

/// An earlier clone of the module, of a tensor or of the optimiser keeps its values: the step copies on write.
#[test]
fn a_clone_is_not_changed() {
    let (golden, device) = (golden(), Device::flex().autodiff());
    let module = four(&golden["start"], &device);
    let mut optimizer = AdamW::new(AdamOptions::default());
    let grads = gradients(&module, &golden["grads"][0]);
    let (module, _) = optimizer.step(module, grads, 0.01);
    let (clone, valid, tensor, earlier) =
        (module.clone(), module.valid(), module.vector.val(), optimizer.clone());
    let before = (parameters(&module), optimizer.moments().collect::<Vec<_>>());
    let grads = gradients(&module, &golden["grads"][1]);
    let (module, _) = optimizer.step(module, grads, 0.01);
    assert_ne!(parameters(&module), before.0);
    assert_eq!((parameters(&clone), parameters(&valid)), (before.0.clone(), before.0.clone()));
    assert_eq!(values(tensor), before.0["vector"]);
    assert_eq!(earlier.moments().collect::<Vec<_>>(), before.1);
}

/// The kernel and the composed fallback take the same step.
#[test]
fn agrees_with_composed() {
    let (golden, device) = (golden(), Device::flex());
    let case = &golden["cases"]["clipped"];
    let module = four(&golden["start"], &device);
    let step = AdamStep::new([0.9, 0.999], 1e-8, 0.3, 0.01, 0.25, 2);
    let [m, v] = [&case["first"], &case["second"]].map(|x| tensor(&x["matrix"], [3, 7], &device));
    let g = tensor(&golden["grads"][1]["matrix"], [3, 7], &device);
    let operands = || [&module.matrix.val(), &g, &m, &v].map(|x| x.clone().into_dispatch());
    let [x, g_, m_, v_] = operands();
    let fused = <Dispatch as UpdateOps>::adam(x, g_, m_, v_, step);
    let [x, g_, m_, v_] = operands();
    let composed = crate::ops::composed_adam::<Dispatch>(x, g_, m_, v_, step);
    let all = |t: (FloatTensor<Dispatch>, FloatTensor<Dispatch>, FloatTensor<Dispatch>)| {
        [t.0, t.1, t.2].map(|x| values(Tensor::<2>::from_dispatch(x))).concat()
    };
    let (fused, composed) = (all(fused), all(composed));
    for (a, b) in fused.iter().zip(&composed) {
        assert!((a - b).abs() < 1e-6, "{a} and {b}");
    }
    assert_eq!(fused.len(), 63);
}

/// A step returns a norm of NaN or ∞ and changes nothing: no parameter, no moment, no count of steps.
#[test]
fn a_norm_that_is_not_finite_changes_nothing() {
    let (golden, device) = (golden(), Device::flex().autodiff());
    let start = &golden["start"];
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let module = four(start, &device);
        let clip = Some(1.0);
        let mut optimizer = AdamW::new(AdamOptions { clip, ..Default::default() });
        let grads = gradients(&module, &golden["grads"][0]);
        let (module, _) = optimizer.step(module, grads, 0.01);
        let before = (parameters(&module), optimizer.moments().collect::<Vec<_>>());
        let mut grads = gradients(&module, &golden["grads"][1]);
        grads.register(module.idle.id, Tensor::<1>::from_floats([0.0, bad, 1.0], &Device::flex()));
        let (module, norm) = optimizer.step(module, grads, 0.01);
        assert!(!norm.is_finite() && norm.is_nan() == bad.is_nan());
        assert_eq!((parameters(&module), optimizer.moments().collect::<Vec<_>>()), before);
        assert_eq!(optimizer.steps(), 1);
        assert!(module.matrix.val().is_require_grad());
    }
}

/// A restored optimiser continues with the same bits.
#[test]
fn a_restored_optimizer_goes_on() {
    let (golden, device) = (golden(), Device::flex().autodiff());
    let run = |restored: bool| {
        let mut module = four(&golden["start"], &device);
        let mut optimizer = AdamW::new(options(&golden["cases"]["clipped"]));
        for (t, g) in golden["grads"].as_array().unwrap().iter().enumerate() {
            if restored && t == 2 {
                let (steps, moments) = (optimizer.steps(), optimizer.moments().collect());
                optimizer = AdamW::restore(*optimizer.options(), &module, steps, moments);
            }
            let grads = gradients(&module, g);
            module = optimizer.step(module, grads, 0.01).0;
        }
        (parameters(&module), optimizer.steps(), optimizer.moments().collect::<Vec<_>>())
    };
    assert_eq!(run(true), run(false));
}

/// It would turn every gradient around.
#[test]
#[should_panic(expected = "clip of Adam: Some(-1.0), not above 0")]
fn a_clip_below_zero_is_not_restored() {
    let module = four(&golden()["start"], &Device::flex());
    let options = AdamOptions { clip: Some(-1.0), ..Default::default() };
    AdamW::restore(options, &module, 1, vec![None; 4]);
}

#[test]
#[should_panic(expected = "2 moments of a parameter of shape [3, 7]")]
fn moments_of_another_size_are_refused() {
    let module = four(&golden()["start"], &Device::flex());
    let short = AdamMoments { steps: 1, first: vec![0.0; 2], second: vec![0.0; 2] };
    AdamW::restore(AdamOptions::default(), &module, 1, vec![Some(short), None, None, None]);
}

/// With zero gradients, decayed parameters shrink by 1 − η λ and the others stay. Names are paths in the module.
#[test]
fn decay_goes_by_name() {
    let (golden, device) = (golden(), Device::flex().autodiff());
    let zero = |module: &Four| {
        let mut grads = GradientsParams::new();
        let plain = Device::flex();
        grads.register(module.matrix.id, Tensor::<2>::zeros([3, 7], &plain));
        grads.register(module.vector.id, Tensor::<1>::zeros([19], &plain));
        grads.register(module.late.id, Tensor::<2>::zeros([2, 2], &plain));
        grads
    };
    for (decayed, free) in [
        (DecayRule::All, &[][..]),
        (DecayRule::Matrices(&[]), &["vector"]),
        (DecayRule::Matrices(&["late"]), &["vector", "late"]),
        (DecayRule::Unless(&["matrix", "late"]), &["matrix", "late"]),
        (DecayRule::Unless(&["matri", "late"]), &["late"]), // whole names only
        (DecayRule::Unless(&["inner"]), &[]),               // no part of any name
    ] {
        for form in [AdamForm::PyTorch, AdamForm::Bert] {
            let module = four(&golden["start"], &device);
            let options = AdamOptions { weight_decay: 0.5, decayed, form, ..Default::default() };
            let (before, grads) = (parameters(&module), zero(&module));
            let (module, _) = AdamW::new(options).step(module, grads, 0.1);
            for (name, after) in parameters(&module) {
                let keep = if name == "idle" || free.contains(&name) { 1.0 } else { 0.95 };
                let want = before[name].iter().map(|x| x * keep);
                assert!(after.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{name}");
            }
        }
    }
}

/// A rule names whole parts of a dotted name, at its beginning, in its middle and at its end.
#[test]
fn decay_reads_whole_names() {
    let free = |names: &'static [&'static str], name| !DecayRule::Unless(names).holds(name, 1);
    for (names, name, want) in [
        (&["bias"][..], "0.up.bias", true),
        (&["bias"], "bias", true),
        (&["bias"], "0.up.unbiased", false),
        (&["norm.gamma"], "text.norm.gamma", true),
        (&["norm.gamma"], "text.box_norm.gamma", false),
        (&["norm.gamma"], "norm.gammas", false),
        (&["text"], "text.norm.gamma", true),
        (&["text", "norm"], "context.layernorm.gamma", false),
    ] {
        assert_eq!(free(names, name), want, "{names:?} in {name}");
    }
}

/// A factor scales the rate of its parameter: two steps are the steps of an optimiser with that rate. The idle parameter
/// has a factor too.
#[test]
fn factors_go_by_the_order_of_the_module() {
    let (golden, device) = (golden(), Device::flex().autodiff());
    let options = options(&golden["cases"]["clipped"]);
    let run = |factors: Vec<f64>, rate: f64| {
        let mut module = four(&golden["start"], &device);
        let mut optimizer = AdamW::new(options).with_factors(factors);
        for g in &golden["grads"].as_array().unwrap()[1..3] {
            let grads = gradients(&module, g);
            module = optimizer.step(module, grads, rate).0;
        }
        parameters(&module)
    };
    let factors = [("matrix", 0.5), ("vector", 1.0), ("late", 0.25), ("idle", 2.0)];
    let got = run(factors.map(|(_, factor)| factor).to_vec(), 0.5);
    for (name, factor) in factors {
        assert_eq!(got[name], run(vec![], 0.5 * factor)[name], "{name}");
    }
}

#[test]
#[should_panic(expected = "3 factors of the rate for 4 parameters")]
fn factors_of_another_module_are_refused() {
    let module = four(&golden()["start"], &Device::flex());
    let mut optimizer = AdamW::new(AdamOptions::default()).with_factors(vec![1.0; 3]);
    optimizer.step(module, GradientsParams::new(), 0.1);
}

/// Without any gradient, the norm is 0 and every parameter stays.
#[test]
fn no_gradients_change_nothing() {
    let module = four(&golden()["start"], &Device::flex());
    let before = parameters(&module);
    let decay = AdamOptions { weight_decay: 0.5, ..Default::default() };
    let (module, norm) = AdamW::new(decay).step(module, GradientsParams::new(), 0.1);
    assert_eq!((parameters(&module), norm), (before, 0.0));
}
