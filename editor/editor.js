// The editor of the page Ask: CodeMirror 6 with SQL, built into one file by `make vendor`.
//
//   const editor = open({parent, text, names, nonce, changed})
//   editor.text()   editor.insert(text)   editor.underline(start, end, why)   editor.clear()   editor.focus()
//
// Styles go into elements with the page's nonce: its policy allows no others.

import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { sql, SQLDialect } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// What is answered here: the rest of SQL would be offered and then refused.
const dialect = SQLDialect.define({
  keywords: "select distinct from where group by having order asc desc limit offset as and or not in is null between like "
    + "case when then else end join left inner on using with union all over partition filter cast interval date timestamp "
    + "count sum avg min max median stddev variance corr coalesce nullif least greatest round floor ceil abs extract "
    + "date_trunc lag lead rank row_number percentile_cont within describe show tables",
  types: "integer double varchar boolean date timestamp",
});

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", border: "1px solid var(--edge)", borderRadius: "var(--r)" },
  "&.cm-focused": { outline: "3px solid var(--accent)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", minHeight: "9rem" },
  ".cm-content": { padding: "var(--s3) 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 var(--s3)" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": { backgroundColor: "var(--accent-soft)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--sunk)", outline: "1px solid var(--edge)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--edge)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", fontFamily: "var(--sans)" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--bad)" },
  ".cm-lintRange-error": {
    backgroundImage: "none", textDecoration: "underline wavy var(--bad) 2px", textUnderlineOffset: ".25em",
  },
});

const colours = syntaxHighlighting(HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--quiet)", fontStyle: "italic" },
]));

export function open({ parent, text, names, nonce, changed }) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorView.cspNonce.of(nonce),
        EditorView.contentAttributes.of({ "aria-label": "Your question, in SQL", "aria-multiline": "true" }),
        EditorView.lineWrapping,
        history(),
        bracketMatching(),
        autocompletion({ icons: false }),
        sql({ dialect, schema: names, upperCaseKeywords: true }),
        // Tab leaves the editor; Ctrl and Enter ask, which is the page's.
        keymap.of([...completionKeymap, ...defaultKeymap.filter((one) => one.key !== "Mod-Enter"), ...historyKeymap]),
        EditorView.updateListener.of((update) => update.docChanged && changed(view.state.doc.toString())),
        look,
        colours,
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    focus: () => view.focus(),
    insert: (piece) => {
      view.dispatch(view.state.replaceSelection(piece));
      view.focus();
    },
    underline: (start, end, why) => {
      const length = view.state.doc.length;
      const from = Math.min(start, length);
      const to = Math.max(from, Math.min(end, length));
      view.dispatch(setDiagnostics(view.state, [{ from, to, severity: "error", message: why }]));
    },
    clear: () => view.dispatch(setDiagnostics(view.state, [])),
  };
}
