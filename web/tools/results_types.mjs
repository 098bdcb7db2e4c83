// Writes web/src/data/results_schema.ts from docs/results.schema.json: one type for each of its $defs, so that the
// compiler refuses a key that results.json does not have. Knows the keywords that the schema uses, and no other.
import { readFileSync, writeFileSync } from "node:fs";

const schema = JSON.parse(readFileSync(new URL("../../docs/results.schema.json", import.meta.url), "utf8"));
const target = new URL("../src/data/results_schema.ts", import.meta.url);
const known = new Set(["$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "properties", "required",
                       "additionalProperties", "items", "minItems", "minimum", "anyOf"]);
const primitives = { string: "string", number: "number", integer: "number", boolean: "boolean", null: "null" };

const camel = (name) => name.split("_").map((part) => part[0].toUpperCase() + part.slice(1)).join("");
const comment = (schema, indent) => (schema.description ? `${indent}// ${schema.description}\n` : "");

function objectOf(schema, indent) {
  const inner = indent + "  ", required = new Set(schema.required ?? []);
  if (!schema.properties) return `Record<string, ${typeOf(schema.additionalProperties, indent)}>`;
  for (const key of required) if (!(key in schema.properties)) throw new Error(`'${key}' is required and not described`);
  const lines = Object.entries(schema.properties).map(
    ([key, value]) => `${comment(value, inner)}${inner}${key}${required.has(key) ? "" : "?"}: ${typeOf(value, inner)};\n`);
  return `{\n${lines.join("")}${indent}}`;
}

function typeOf(schema, indent = "") {
  for (const keyword of Object.keys(schema)) if (!known.has(keyword)) throw new Error(`the schema says '${keyword}'`);
  if (schema.$ref) return camel(schema.$ref.replace("#/$defs/", ""));
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, indent)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  const types = [schema.type].flat().map((type) => {
    if (type === "object") return objectOf(schema, indent);
    if (type === "array") return `readonly ${schema.items.$ref ? typeOf(schema.items, indent) : `(${typeOf(schema.items, indent)})`}[]`;
    if (!(type in primitives)) throw new Error(`the schema has the type '${type}'`);
    return primitives[type];
  });
  return types.join(" | ");
}

let text = "// Made by web/tools/results_types.mjs from docs/results.schema.json; `make web` writes it anew.\n\n";
for (const [name, one] of Object.entries(schema.$defs)) text += `${comment(one, "")}export type ${camel(name)} = ${typeOf(one)};\n`;
text += `${comment(schema, "")}export type Results = ${typeOf(schema)};\n`;
writeFileSync(target, text);
