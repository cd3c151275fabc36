// Buttons that copy what stands beside them.

/** Puts a button before the text of each `.copied` in the page. */
export function bindCopying(): void {
  for (const place of document.querySelectorAll<HTMLElement>(".copied")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", () => {
      const text = place.querySelector("pre");
      if (text) void copy(text).then((done) => say(button, done ? "Copied" : "Selected: press Ctrl-C"));
    });
    place.prepend(button);
  }
}

/** A page from a file may not be allowed to use the clipboard: then the text is selected. */
async function copy(text: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text.textContent ?? "");
    return true;
  } catch {
    getSelection()?.selectAllChildren(text);
    return false;
  }
}

function say(button: HTMLButtonElement, text: string): void {
  button.textContent = text;
  setTimeout(() => (button.textContent = "Copy"), 2000);
}
