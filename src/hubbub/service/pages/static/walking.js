// A walk over the ledger: says each second how far it is, and shows what it found once it has ended.

const bar = document.getElementById("bar");
const text = document.getElementById("far");

async function look() {
  try {
    const answer = await fetch(location.href);
    const told = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = told.getElementById("bar");
    if (answer.ok && !fresh) {
      location.reload();
      return;
    }
    if (fresh) {
      bar.value = fresh.value;
      text.textContent = told.getElementById("far").textContent;
    }
  } catch {
    // The service is away: it is asked again.
  }
  setTimeout(look, 1000);
}

setTimeout(look, 1000);
