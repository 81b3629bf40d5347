// What xt/javascript.pl reads: a word and values on each line.
import { readFileSync } from 'node:fs';

export const print = (what, ...values) => console.log([what, ...values.flat()].join(' '));

export const printVersion = (client, name) =>
  print('version', client, JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version);
