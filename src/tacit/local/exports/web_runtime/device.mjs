// A Tacit device for browsers: one series in, one randomised symbol out. No dependencies.
//
//     import { loadDevice } from "./device.mjs";
//     const device = loadDevice();
//     const release = device.release(series); // JSON for 'tacit classify' and 'tacit send'
//
// Guarantee: a release is epsilon-locally differentially private when the whole series is replaced,
// with the epsilon of device.guarantee: everything before the channel is a function of the series,
// and the channel is sampled in whole numbers of 2^-62 (BigInt).
// Assumes: crypto.getRandomValues gives uniform, independent, secret words; without it nothing is
// released. Composes: releases about one series add up; this module keeps no account of them.
// Not covered: whether and when a release is sent, how long it takes to compute, and other scripts
// of the same page, which can read the series.
//
// The order of every sum is fixed and each product is rounded to float32 before it is added, so that
// features equal those of golden.json to the bit.

const TAPS = 9;
const HALF = 4;
const HUGE = 1e12;
const ONE = 1n << 62n;
const fround = Math.fround;

/** Bad input or a refused action: one sentence with the value and the next step. */
export class TacitError extends Error {
  constructor(message) {
    super(message);
    this.name = "TacitError";
  }
}

/** The device of the model in this module, or of another model object in the same format. */
export function loadDevice(model = MODEL) {
  if (model?.format !== "tacit-web" || model.format_version !== 1) {
    throw new TacitError("this is not a Tacit model for the web; export it with format 'web'.");
  }
  return new Device(model);
}

class Device {
  #model;
  #bodies;
  #fill;
  #thresholds;
  #work;

  constructor(model) {
    const numbers = decode(model.data);
    const at = ([first, length]) => numbers.subarray(first, first + length);
    this.#model = model;
    this.#bodies = model.bodies.map((body) => readBody(body, at));
    this.#fill = model.fill === null ? null : at(model.fill);
    this.#thresholds = checkedThresholds(model.thresholds, model.epsilon);
    this.#work = workspace(model, this.#bodies);
    secureGenerator();
  }

  get kind() { return this.#model.kind; }
  get model() { return this.#model.identity; }
  get guarantee() { return structuredClone(this.#model.guarantee); }
  get classes() { return [...this.#model.classes]; }
  get nChannels() { return this.#model.n_channels; }
  get nTimepoints() { return this.#model.n_timepoints; }

  /** What may leave for one series: T numbers, or one array of T numbers per channel. */
  release(series) {
    const generator = secureGenerator();
    const symbol = this.#draw(this.privateSymbol(series), generator);
    const { kind, model, guarantee } = this;
    return { kind, model, guarantee, id: randomId(generator), values: [symbol] };
  }

  /** What the server makes of a release: the class, and the place where there is one. */
  classify(release) {
    if (release?.kind !== this.kind || release.model !== this.model) {
      throw new TacitError(
        `these are '${release?.kind}' releases of model ${release?.model}, this is ` +
          `'${this.kind}' model ${this.model}; classify them with the bundle that released them.`,
      );
    }
    return release.values.map((symbol) => this.#described(symbol));
  }

  /** For tests; private, never send it. */
  features(series) {
    const features = new Float32Array(this.#bodies[0].nFeatures);
    this.#score(0, this.#checked(series), 0, 0, features);
    return features;
  }

  /** For tests: the device's own symbol before the channel; private, never send it. */
  privateSymbol(series) {
    const values = this.#checked(series);
    const scores = this.#score(0, values, 0, 0, null);
    let label = 0;
    for (let k = 1; k < scores.length; k++) if (scores[k] > scores[label]) label = k;
    const places = this.#model.edges.length - 1;
    return places > 1 ? label * places + this.#locate(values, label, places) : label;
  }

  /** For tests: what leaves for a private symbol. */
  randomize(symbol) {
    if (!Number.isInteger(symbol) || symbol < 0 || symbol >= this.#thresholds.length) {
      throw new TacitError(`symbols are 0..${this.#thresholds.length - 1}, got ${symbol}.`);
    }
    return this.#draw(symbol, secureGenerator());
  }

  /** Sentences about golden vectors that this browser does not meet; none is as it should be. */
  check(golden) {
    if (golden?.model !== this.model) return ["the golden vectors belong to another model."];
    const found = [];
    golden.vectors.forEach((vector, number) => {
      const symbol = this.privateSymbol(vector.series);
      if (symbol !== vector.symbol) {
        found.push(`vector ${number + 1} is symbol ${symbol}, not ${vector.symbol}.`);
      }
      const wanted = new Uint32Array(decode(vector.features).buffer);
      const bits = new Uint32Array(this.features(vector.series).buffer);
      const wrong = bits.filter((value, index) => value !== wanted[index]).length;
      if (wrong > 0 || bits.length !== wanted.length) {
        found.push(`vector ${number + 1} has ${wrong} features that differ.`);
      }
    });
    return found;
  }

  #draw(symbol, generator) {
    const word = generator.getRandomValues(new BigUint64Array(1))[0] >> 2n; // 62 bits: a row's units
    let released = 0;
    for (const threshold of this.#thresholds[symbol]) released += threshold <= word ? 1 : 0;
    return released;
  }

  #described(symbol) {
    const places = this.#model.edges.length - 1;
    if (!Number.isInteger(symbol) || symbol < 0 || symbol >= this.#thresholds.length) {
      throw new TacitError(`released symbol ${symbol} belongs to another model.`);
    }
    const label = this.#model.classes[Math.floor(symbol / places)];
    return places > 1 ? { label, place: symbol % places } : { label };
  }

  #checked(series) {
    const { n_channels: channels, n_timepoints: steps } = this.#model;
    return checkSeries(series, channels, steps);
  }

  #locate(values, label, places) {
    const { edges } = this.#model;
    let found = 0;
    let lowest = Infinity;
    for (let place = 0; place < places; place++) {
      const left = this.#score(1, values, edges[place], edges[place + 1], null)[label];
      if (left < lowest) {
        lowest = left;
        found = place;
      }
    }
    return found;
  }

  #score(which, values, first, last, features) {
    const body = this.#bodies[which];
    const work = this.#work;
    const scores = Float64Array.from(body.intercept);
    standardise(work, body, values, this.#fill, first, last);
    let order = 0;
    let index = 0;
    for (const pool of body.pools) {
      if (pool.order > order) {
        takeDifferences(work);
        order = pool.order;
      }
      const out = { body, scores, features, index };
      if (pool.size > 0) competition(work, pool, out);
      else proportions(work, pool, out);
      index += pool.nFeatures;
    }
    return scores;
  }
}

// Tells a copy of a release from another release; it says nothing of the series.
function randomId(generator) {
  const bytes = generator.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function secureGenerator() {
  const generator = globalThis.crypto;
  if (typeof generator?.getRandomValues !== "function") {
    throw new TacitError(
      "there is no secure randomness here (crypto.getRandomValues); nothing was released, " +
        "use a browser that has it.",
    );
  }
  return generator;
}

function decode(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

function readBody(body, at) {
  const pools = body.pools.map((pool) => ({
    order: pool.order,
    dilation: pool.dilation,
    count: pool.count,
    size: pool.size,
    skip: pool.skip,
    nFeatures: pool.n_features,
    values: at(pool.values),
    channels: pool.channels === "" ? null : Uint8Array.from(pool.channels, Number),
  }));
  return {
    pools,
    offset: at(body.offset),
    scale: at(body.scale),
    weights: at(body.weights),
    intercept: at(body.intercept),
    nFeatures: pools.reduce((sum, pool) => sum + pool.nFeatures, 0),
  };
}

// Running sums of each row in units of 2^-62. What was exact when it was exported is checked again
// up to the rounding of a quotient, so that a damaged file is not used.
function checkedThresholds(rows, epsilon) {
  const thresholds = rows.map((row) => row.map((text) => BigInt(text)));
  const weights = thresholds.map((row) => row.map((sum, j) => sum - (j > 0 ? row[j - 1] : 0n)));
  const sound =
    thresholds.every((row) => row.length === rows.length && row[row.length - 1] === ONE) &&
    weights.every((row) => row.every((weight) => weight >= 0n)) &&
    rows.every((_, j) => columnEpsilon(weights.map((row) => row[j])) <= epsilon + 1e-9);
  if (!sound) throw new TacitError("the channel of this model was altered; export it again.");
  return thresholds;
}

function columnEpsilon(column) {
  const numbers = column.map(Number);
  const largest = Math.max(...numbers);
  return largest === 0 ? 0 : Math.log(largest / Math.min(...numbers));
}

function workspace(model, bodies) {
  const pools = bodies.flatMap((body) => body.pools);
  const padding = HALF * Math.max(...pools.map((pool) => pool.dilation));
  const steps = model.n_timepoints;
  return {
    steps,
    padding,
    level: Array.from({ length: model.n_channels }, () => new Float32Array(steps + 2 * padding)),
    zeros: new Float32Array(steps),
    head: new Float32Array(steps),
    response: new Float32Array(steps),
    highest: new Float32Array(steps),
    lowest: new Float32Array(steps),
    winners: new Int32Array(steps),
    losers: new Int32Array(steps),
  };
}

function standardise(work, body, values, fill, first, last) {
  const { steps, padding } = work;
  work.level.forEach((level, c) => {
    const offset = body.offset[c];
    const scale = body.scale[c];
    for (let t = 0; t < steps; t++) {
      const value = t >= first && t < last ? fill[c * steps + t] : values[c * steps + t];
      level[padding + t] = (value - offset) * scale; // float64, rounded once by the array
    }
  });
}

function takeDifferences(work) {
  const { steps, padding } = work;
  for (const level of work.level) {
    for (let t = padding + steps - 1; t > padding; t--) level[t] = level[t] - level[t - 1];
    level[padding] = 0;
  }
}

// Adds the response of one channel, tap after tap.
function addResponse(level, padding, steps, dilation, taps, at, response) {
  const w0 = taps[at], w1 = taps[at + 1], w2 = taps[at + 2];
  const w3 = taps[at + 3], w4 = taps[at + 4], w5 = taps[at + 5];
  const w6 = taps[at + 6], w7 = taps[at + 7], w8 = taps[at + 8];
  let i = padding - HALF * dilation;
  for (let t = 0; t < steps; t++, i++) {
    let sum = response[t];
    sum = fround(sum + fround(w0 * level[i]));
    sum = fround(sum + fround(w1 * level[i + dilation]));
    sum = fround(sum + fround(w2 * level[i + 2 * dilation]));
    sum = fround(sum + fround(w3 * level[i + 3 * dilation]));
    sum = fround(sum + fround(w4 * level[i + 4 * dilation]));
    sum = fround(sum + fround(w5 * level[i + 5 * dilation]));
    sum = fround(sum + fround(w6 * level[i + 6 * dilation]));
    sum = fround(sum + fround(w7 * level[i + 7 * dilation]));
    sum = fround(sum + fround(w8 * level[i + 8 * dilation]));
    response[t] = sum;
  }
}

// The same for weights of -1 and 2, whose products are exact and need no rounding of their own, in
// two parts: kernels that follow each other mostly share their first five taps.
function addHead(level, padding, steps, dilation, taps, start, head) {
  const [w0, w1, w2, w3, w4] = taps;
  let i = padding - HALF * dilation;
  for (let t = 0; t < steps; t++, i++) {
    let sum = fround(start[t] + w0 * level[i]);
    sum = fround(sum + w1 * level[i + dilation]);
    sum = fround(sum + w2 * level[i + 2 * dilation]);
    sum = fround(sum + w3 * level[i + 3 * dilation]);
    head[t] = sum + w4 * level[i + 4 * dilation]; // rounded by the array
  }
}

function addTail(level, padding, steps, dilation, taps, head, response) {
  const w5 = taps[5], w6 = taps[6], w7 = taps[7], w8 = taps[8];
  let i = padding + dilation;
  for (let t = 0; t < steps; t++, i++) {
    let sum = fround(head[t] + w5 * level[i]);
    sum = fround(sum + w6 * level[i + dilation]);
    sum = fround(sum + w7 * level[i + 2 * dilation]);
    response[t] = sum + w8 * level[i + 3 * dilation];
  }
}

function addFeature(out, offset, value) {
  const { scores, features } = out;
  const weights = out.body.weights;
  const index = out.index + offset;
  const classes = scores.length;
  if (features !== null) features[index] = value;
  for (let k = 0; k < classes; k++) scores[k] += value * weights[index * classes + k];
}

// The 84 kernels with three weights of 2 and six of -1, in lexicographic order.
const KERNELS = (() => {
  const kernels = [];
  for (let i = 0; i < TAPS; i++)
    for (let j = i + 1; j < TAPS; j++)
      for (let k = j + 1; k < TAPS; k++) {
        const taps = new Float32Array(TAPS).fill(-1);
        taps[i] = taps[j] = taps[k] = 2;
        kernels.push({ taps, head: taps.subarray(0, 5).join() });
      }
  return kernels;
})();

function proportions(work, pool, out) {
  const { steps, response } = work;
  const pad = HALF * pool.dilation;
  work.known = null;
  KERNELS.forEach((kernel, number) => {
    if (work.level.length === 1) singleResponse(work, pool.dilation, kernel);
    else channelResponses(work, pool, kernel, number);
    const skip = steps > 2 * pad && number % 2 === pool.skip;
    const first = skip ? pad : 0;
    const last = skip ? steps - pad : steps;
    for (let f = 0; f < pool.count; f++) {
      const at = number * pool.count + f;
      const count = countAbove(response, first, last, pool.values[at]);
      addFeature(out, at, fround(count / (last - first)));
    }
  });
}

function singleResponse(work, dilation, { taps, head }) {
  const { steps, padding, level, zeros, response } = work;
  if (work.known !== head) {
    addHead(level[0], padding, steps, dilation, taps, zeros, work.head);
    work.known = head;
  }
  addTail(level[0], padding, steps, dilation, taps, work.head, response);
}

function channelResponses(work, pool, { taps }, number) {
  const { steps, padding, level, response } = work;
  response.fill(0);
  for (let c = 0; c < level.length; c++) {
    if (pool.channels[number * level.length + c] === 0) continue;
    addHead(level[c], padding, steps, pool.dilation, taps, response, work.head);
    addTail(level[c], padding, steps, pool.dilation, taps, work.head, response);
  }
}

function countAbove(response, first, last, bias) {
  let count = 0;
  for (let t = first; t < last; t++) count += response[t] > bias ? 1 : 0;
  return count;
}

function competition(work, pool, out) {
  const { steps } = work;
  const losses = pool.count * pool.size;
  const strength = new Float32Array(pool.size);
  const lost = new Int32Array(pool.size);
  for (let group = 0; group < pool.count; group++) {
    groupResponses(work, pool, group);
    strength.fill(0);
    lost.fill(0);
    for (let t = 0; t < steps; t++) {
      for (let left = work.winners[t]; left !== 0; left &= left - 1) {
        strength[31 - Math.clz32(left & -left)] += work.highest[t];
      }
      for (let left = work.losers[t]; left !== 0; left &= left - 1) {
        lost[31 - Math.clz32(left & -left)]++;
      }
    }
    for (let rank = 0; rank < pool.size; rank++) {
      const at = group * pool.size + rank;
      addFeature(out, at, fround(Math.sqrt(fround(Math.max(strength[rank], 0) / steps))));
      addFeature(out, losses + at, fround(Math.sqrt(fround(lost[rank] / steps))));
    }
  }
}

function groupResponses(work, pool, group) {
  const { steps, padding, level, response } = work;
  work.highest.fill(-Infinity);
  work.lowest.fill(Infinity);
  for (let rank = 0; rank < pool.size; rank++) {
    const kernel = (rank * pool.count + group) * level.length * TAPS;
    response.fill(0);
    for (let c = 0; c < level.length; c++) {
      addResponse(level[c], padding, steps, pool.dilation, pool.values, kernel + c * TAPS, response);
    }
    noteExtremes(work, response, steps, 1 << rank);
  }
}

// Which kernels of a group respond most and least at each step, as bits: ties have several.
function noteExtremes({ highest, lowest, winners, losers }, response, steps, bit) {
  for (let t = 0; t < steps; t++) {
    const value = response[t];
    if (value > highest[t]) {
      highest[t] = value;
      winners[t] = bit;
    } else if (value === highest[t]) winners[t] |= bit;
    if (value < lowest[t]) {
      lowest[t] = value;
      losers[t] = bit;
    } else if (value === lowest[t]) losers[t] |= bit;
  }
}

// The checks and sentences of the NumPy runtime.
function checkSeries(series, channels, steps) {
  const listed = (value) => Array.isArray(value) || ArrayBuffer.isView(value);
  if (!listed(series)) throw new TacitError("the series must be a list of numbers.");
  const rows = series.length > 0 && listed(series[0]) ? Array.from(series) : [series];
  if (rows.some((row) => !listed(row) || Array.from(row).some((v) => typeof v !== "number"))) {
    throw new TacitError(
      "the series holds values that are not numbers; convert every value to a number.",
    );
  }
  const wrong = rows.find((row) => row.length !== steps);
  if (rows.length !== channels || wrong !== undefined) {
    throw new TacitError(
      `the series has ${rows.length} channels and ${(wrong ?? rows[0]).length} steps, ` +
        `the model reads ${channels} and ${steps}; resample the series or train on this shape.`,
    );
  }
  refuseValues(rows, (value) => !Number.isFinite(value), (value) =>
    `${spelled(value)}; fill or drop missing and infinite values first.`);
  refuseValues(rows, (value) => Math.abs(value) > HUGE, (value) =>
    `${short(value)}, beyond 1e+12; replace sentinels and choose a unit of ordinary size.`);
  if (rows.every((row) => Array.from(row).every((value) => value === row[0]))) {
    throw new TacitError(
      "the series row 1 is constant in every channel; check the sensor, a flat series holds " +
        "nothing to classify.",
    );
  }
  return Float64Array.from(rows.flatMap((row) => Array.from(row)));
}

function refuseValues(rows, bad, words) {
  rows.forEach((row, channel) => {
    const step = row.findIndex(bad);
    if (step >= 0) {
      throw new TacitError(
        `the series row 1, channel ${channel + 1}, step ${step + 1} is ${words(row[step])}`,
      );
    }
  });
}

function spelled(value) {
  if (Number.isNaN(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

// A number beyond 1e12 with six digits, as C and Python write it.
function short(value) {
  const [digits, exponent] = value.toExponential(5).split("e");
  const power = exponent.replace(/^([+-])(\d)$/, "$10$2");
  return `${digits.replace(/\.?0+$/, "")}e${power}`;
}
