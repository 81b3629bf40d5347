// What test/external/javascript.pl reads: a word and values on each line.
import { readFileSync } from 'node:fs';

export const print = (what, ...values) => console.log([what, ...values.flat()].join(' '));

export const printVersion = (client, name) =>
  print('version', client, JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version);

// The types of a client's IDs from a bigint, from a snowflake, and from the latter if the client is told of it.
export const printTypes = (client, ...ids) => print('types', `${client}:`, ids.map((id) => typeof id));

// One of these IDs that a Number turns into another of them.  Clients send the shortest digits that name the double.
export const pickMistakable = (ids) => {
  const all = new Set(ids.map(String));
  return ids.find((id) => String(Number(id)) !== String(id) && all.has(String(Number(id))));
};
