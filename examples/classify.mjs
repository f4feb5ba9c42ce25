// Labels texts with a model that `labelspace export model exported` wrote; see docs/export.md.
//
//     npm install onnxruntime-node @huggingface/tokenizers
//     node classify.mjs exported < texts.txt        a text a line in, a line of JSON out

import fs from "node:fs";
import ort from "onnxruntime-node";
import { Tokenizer } from "@huggingface/tokenizers";

const BATCH = 16;
const folder = process.argv[2];
const json = (name) => JSON.parse(fs.readFileSync(`${folder}/${name}`, "utf8"));
const facts = json("labelspace.json");
const spec = json("tokenizer.json");
const { names } = facts.labels;
const { prompt, max_tokens } = facts.tokenizer;
const rule = facts.decision;
const tokenizer = new Tokenizer(spec, {});
const session = await ort.InferenceSession.create(`${folder}/${facts.graph.file}`);

// safetensors: eight bytes with the length of the header, the header in JSON, the numbers.
const bytes = fs.readFileSync(`${folder}/labels.safetensors`);
const start = 8 + Number(bytes.readBigUInt64LE(0));
const place = JSON.parse(bytes.toString("utf8", 8, start)).vectors;
const size = place.shape[1];
const values = new Float32Array(Uint8Array.from(bytes.subarray(start + place.data_offsets[0])).buffer);
const labels = names.map((_, row) => values.subarray(row * size, (row + 1) * size));

function encode(text) {
  const { ids } = tokenizer.encode(prompt + text);
  // This tokenizer does not truncate. The last token closes the text, as in encoders of the BERT family.
  return ids.length > max_tokens ? [...ids.slice(0, max_tokens - 1), ids.at(-1)] : ids;
}

async function classify(texts) {
  const rows = texts.map(encode);
  const length = Math.max(...rows.map((ids) => ids.length));
  const table = (cell) =>
    new ort.Tensor("int64", BigInt64Array.from(rows.flatMap((ids) => Array.from({ length }, (_, at) => BigInt(cell(ids, at))))), [rows.length, length]);
  const columns = {
    input_ids: table((ids, at) => ids[at] ?? spec.padding.pad_id),
    attention_mask: table((ids, at) => at < ids.length),
    token_type_ids: table(() => 0),
  };
  const { vectors } = await session.run(Object.fromEntries(facts.graph.inputs.map((name) => [name, columns[name]])));
  return texts.map((_, row) => answer(vectors.data.subarray(row * size, (row + 1) * size)));
}

function answer(vector) {
  const scores = labels.map((label) => label.reduce((sum, value, at) => sum + value * vector[at], 0));
  if (rule.several) {
    const probabilities = scores.map((score, at) => 1 / (1 + Math.exp((rule.lowest[at] - score) / rule.widths[at])));
    return { labels: names.filter((_, at) => scores[at] >= rule.lowest[at]), scores, probabilities };
  }
  const highest = Math.max(...scores);
  const best = scores.indexOf(highest);
  const powers = scores.map((score) => Math.exp((score - highest) / rule.temperature));
  const sum = powers.reduce((one, other) => one + other);
  const none = rule.lowest && highest < rule.lowest[best];
  return { label: none ? null : names[best], scores, probabilities: powers.map((power) => power / sum) };
}

const texts = fs.readFileSync(0, "utf8").replace(/\r?\n$/, "").split(/\r?\n/);
for (let at = 0; at < texts.length; at += BATCH)
  for (const found of await classify(texts.slice(at, at + BATCH))) console.log(JSON.stringify(found));
