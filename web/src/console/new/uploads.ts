// Files that were uploaded in this tab: what the server said about them.

import { Store } from "../store";
import type { Upload } from "../types";

export interface UploadedFile extends Upload {
  size: number;
}

const KEY = "tacho.uploads";
export const BYTES_MAX = 20 * 1024 * 1024;

function stored(): UploadedFile[] {
  try {
    const known = JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as unknown;
    return Array.isArray(known) ? (known as UploadedFile[]) : [];
  } catch {
    return [];
  }
}

// Lines of data may be those of users: they are not kept longer than the page.
export function toStore(file: UploadedFile): UploadedFile {
  return file.table === undefined ? file : { ...file, table: { ...file.table, first: [] } };
}

export const uploads = new Store<UploadedFile[]>(
  typeof sessionStorage === "undefined" ? [] : stored(),
);

export function keep(file: UploadedFile): void {
  uploads.set([...uploads.get().filter(({ upload }) => upload !== file.upload), file].slice(-50));
  try {
    sessionStorage.setItem(KEY, JSON.stringify(uploads.get().map(toStore)));
  } catch {
    // Without storage they are known as long as the page.
  }
}
