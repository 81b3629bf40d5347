// What test/perl/ClientTest.pm reads: a word and values on each line.
import { readFileSync } from 'node:fs';

export const print = (what, ...values) => console.log([what, ...values.flat()].join(' '));

const { PGUSER, PGHOST, PGPORT, PGDATABASE } = process.env;
export const url = `postgresql://${PGUSER}@${PGHOST}:${PGPORT}/${PGDATABASE}`;
export const titles = Array.from({ length: 1000 }, (_, n) => ({ title: `many ${n}` }));

// A client's IDs
export const report = (client, { one, many, tags }) => {
  print('types', `${client}:`, typeof one, typeof tags[0]);
  print('one', one);
  print('many', many.map((row) => row.id ?? row));
  print('tags', tags);
};

export const printVersion = (client, name) =>
  print('version', client, JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version);
