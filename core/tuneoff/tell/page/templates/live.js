(() => {
  // Asks for the live state again, and loads the page anew once the report has changed; the server has escaped all of it
  const every = 2000, afterEnd = 15000;
  const at = (id) => document.getElementById(id), title = document.title;
  const entitle = () => { document.title = `${at("ended").textContent} · ${title}`; };
  const folds = [...document.querySelectorAll("details[id]")];
  const kept = (sessionStorage.getItem("open") || "").split(" ");
  for (const fold of folds) fold.open = fold.open || kept.includes(fold.id);
  let waiting = null;
  const again = (after) => { clearTimeout(waiting); waiting = setTimeout(poll, after); };
  const show = (text) => {
    const section = new DOMParser().parseFromString(text, "text/html").getElementById("live");
    if (section.dataset.version !== at("live").dataset.version) {
      sessionStorage.setItem("open", folds.filter((fold) => fold.open).map((fold) => fold.id).join(" "));
      location.reload();
      return;
    }
    at("live").replaceWith(section);
    entitle();
    again(["finished", "stopped"].includes(section.dataset.activity) ? afterEnd : every);
  };
  const poll = () => {
    if (document.hidden) return;
    fetch("live", { cache: "no-store", redirect: "error" }).then((answer) => {
      if (!answer.ok) throw new Error(answer.status);
      return answer.text();
    }).then(show).catch(() => {
      at("connection").hidden = false;
      again(every);
    });
  };
  if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token is a cookie now
  document.addEventListener("visibilitychange", () => { if (!document.hidden) again(0); });
  entitle();
  again(every);
})();
