// Chooses files with a button or by drag and drop.
import * as upload from "@zag-js/file-upload";
import { normalizeProps, useMachine } from "@zag-js/preact";
import { useId } from "preact/hooks";

export function Files(props: {
  label: string;
  /** Text in the drop zone. */
  hint: string;
  accept: Record<string, string[]> | string[];
  most: number;
  maxBytes: number;
  onFiles: (files: File[]) => void;
  onRefused: (why: string) => void;
}) {
  const service = useMachine(upload.machine, {
    id: useId(),
    accept: props.accept as never,
    maxFiles: props.most,
    maxFileSize: props.maxBytes,
    onFileAccept: (details: { files: File[] }) => {
      if (details.files.length > 0) {
        props.onFiles(details.files);
        api.clearFiles();
      }
    },
    onFileReject: (details: { files: { file: File; errors: string[] }[] }) => {
      const first = details.files[0];
      if (!first) return;
      props.onRefused(`${first.file.name} was rejected: ${reason(first.errors[0], props)}`);
      api.clearRejectedFiles();
    },
  });
  const api = upload.connect(service, normalizeProps);
  return (
    <div {...api.getRootProps()} class="files">
      <div {...api.getDropzoneProps({ disableClick: true })} class="dropzone" role="group" tabIndex={-1}>
        <button {...api.getTriggerProps()} class="button">
          {props.label}
        </button>
        <span class="soft drop-hint">{props.hint}</span>
        <input {...(api.getHiddenInputProps() as object)} type="file" aria-label={props.label} />
      </div>
    </div>
  );
}

function reason(code: string | undefined, props: { most: number; maxBytes: number }): string {
  switch (code) {
    case "FILE_TOO_LARGE":
      return `it's larger than ${Math.floor(props.maxBytes / 1024 / 1024)} MiB.`;
    case "TOO_MANY_FILES":
      return `choose at most ${props.most}.`;
    case "FILE_INVALID_TYPE":
      return "its file type isn't supported.";
    default:
      return "it can't be read.";
  }
}
