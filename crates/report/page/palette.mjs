// A PNG with a palette: what a browser photographed enters, a picture of at most 256 colours leaves, which is
// about half as large. Drawings and letters on a plain ground lose nothing that one sees.

import assert from "node:assert/strict";
import { deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS = 256;

/** @param {Buffer} png 8 bits a channel, not interlaced, as Chromium writes it */
export function withPalette(png) {
  const { width, height, pixels, channels } = decoded(png);
  /** @type {Map<number, number>} */
  const counts = new Map();
  const colours = new Uint32Array(width * height);
  for (let at = 0; at < colours.length; at++) {
    const from = at * channels;
    const colour = ((pixels[from] ?? 0) << 16) | ((pixels[from + 1] ?? 0) << 8) | (pixels[from + 2] ?? 0);
    colours[at] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = [...counts].sort(([, a], [, b]) => b - a).slice(0, COLOURS).map(([colour]) => colour);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const rows = Buffer.alloc((width + 1) * height);
  colours.forEach((colour, at) => {
    let place = places.get(colour);
    if (place === undefined) places.set(colour, (place = nearest(palette, colour)));
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = place;
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // 8 bits of a palette.
  header.set([8, 3, 0, 0, 0], 8);
  const entries = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff]));
  const parts = [chunk("IHDR", header), chunk("PLTE", entries), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([SIGNATURE, ...parts]);
}

/** @param {number[]} palette @param {number} colour */
function nearest(palette, colour) {
  let [best, least] = [0, Infinity];
  palette.forEach((other, place) => {
    const apart = [16, 8, 0].reduce((sum, shift) => sum + (((colour >> shift) & 0xff) - ((other >> shift) & 0xff)) ** 2, 0);
    if (apart < least) [best, least] = [place, apart];
  });
  return best;
}

/** @param {Buffer} png */
function decoded(png) {
  assert(png.subarray(0, 8).equals(SIGNATURE), "not a PNG");
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const channels = { 2: 3, 6: 4 }[png[25] ?? 0];
  assert(png[24] === 8 && channels && png[28] === 0, "not a PNG of 8 bits a channel without interlacing");
  const data = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    if (png.toString("latin1", at + 4, at + 8) === "IDAT") data.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  return { width, height, channels, pixels: unfiltered(inflateSync(Buffer.concat(data)), width * channels, height, channels) };
}

/** @param {Buffer} rows each behind the number of its filter @param {number} stride @param {number} height @param {number} channels */
function unfiltered(rows, stride, height, channels) {
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x >= channels ? (pixels[at - channels] ?? 0) : 0;
      const above = y > 0 ? (pixels[at - stride] ?? 0) : 0;
      const corner = x >= channels && y > 0 ? (pixels[at - stride - channels] ?? 0) : 0;
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter ?? 0] ?? 0;
      pixels[at] = ((rows[y * (stride + 1) + 1 + x] ?? 0) + guess) & 0xff;
    }
  }
  return pixels;
}

/** @param {number} left @param {number} above @param {number} corner */
function paeth(left, above, corner) {
  const guess = left + above - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** @param {string} name @param {Buffer} content */
function chunk(name, content) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), content]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(content.length, 0);
  frame.writeUInt32BE(checksum(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** CRC-32 as PNG has it. @param {Buffer} bytes */
function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
