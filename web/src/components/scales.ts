// Linear and logarithmic axes with ticks that people would choose.
import { scaleLinear, scaleLog, type ScaleContinuousNumeric } from "d3-scale";

export type Scale = ScaleContinuousNumeric<number, number>;

export interface AxisScale {
  scale: Scale;
  ticks: number[];
  log: boolean;
}

export function logTicks(low: number, high: number, most: number): number[] {
  const decades = Math.log10(high / low);
  if (decades < 0.7) return scaleLinear().domain([low, high]).ticks(Math.min(most, 5)).filter((t) => t > 0);
  const multiples = decades < 1.1 ? [1, 1.5, 2, 3, 5, 7] : decades < 1.6 ? [1, 2, 5] : decades < 3 ? [1, 3] : [1];
  const stride = multiples.length === 1 ? Math.max(1, Math.ceil(decades / most)) : 1;
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    if (((power % stride) + stride) % stride !== 0) continue;
    for (const multiple of multiples) {
      const tick = Number(`${multiple}e${power}`);
      if (tick >= low * 0.9999 && tick <= high * 1.0001) ticks.push(tick);
    }
  }
  return ticks;
}

// Over the finite values given. On a logarithmic axis the ends are at least `leastRatio` apart, so that noise around a
// constant looks like one; a logarithmic axis is refused when nothing is positive.
export function axisScale(values: Iterable<number>, wantLog: boolean, range: [number, number], most: number, pad: number, prefer?: number[], leastRatio = 1): AxisScale {
  let low = Infinity, high = -Infinity, lowPositive = Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
    if (value > 0 && value < lowPositive) lowPositive = value;
  }
  if (low > high) [low, high, lowPositive] = [0, 1, 1];
  const log = wantLog && high > 0 && lowPositive < Infinity;
  if (log) {
    low = lowPositive;
    const short = Math.sqrt(leastRatio / (high / low));
    if (low < high && short > 1) [low, high] = [low / short, high * short];
    const grow = low === high ? 2 : (high / low) ** pad;
    [low, high] = [low / grow, high * grow];
  } else {
    const grow = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * pad;
    [low, high] = [low >= 0 && low < grow * 1.5 ? 0 : low - grow, high + grow];
  }
  const scale: Scale = (log ? scaleLog() : scaleLinear()).domain([low, high]).range(range);
  const own = log ? logTicks(low, high, most) : scale.ticks(most);
  const chosen = prefer && prefer.length >= 2 && prefer.length <= most + 3 ? prefer.filter((t) => t >= low && t <= high && (!log || t > 0)) : own;
  return { scale, ticks: apart(chosen, scale, Math.abs(range[1] - range[0]) / (most * 2.2)), log };
}

// Leaves out ticks whose labels would touch.
function apart(ticks: number[], scale: Scale, least: number): number[] {
  const kept: number[] = [];
  for (const tick of ticks) {
    const last = kept.at(-1);
    if (last === undefined || Math.abs(scale(tick) - scale(last)) >= least) kept.push(tick);
  }
  return kept;
}
