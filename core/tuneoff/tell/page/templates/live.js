(() => {
  // Asks for the live state again, and loads the page anew once the report is another one; the server has escaped all of it
  const every = 2000, afterEnd = 15000;
  const at = (id) => document.getElementById(id);
  const folds = [...document.querySelectorAll("details[id]")];
  const kept = (sessionStorage.getItem("open") || "").split(" ");
  for (const one of folds) one.open = one.open || kept.includes(one.id);
  let waiting = null;
  const again = (after) => { clearTimeout(waiting); waiting = setTimeout(poll, after); };
  const show = (text) => {
    const found = new DOMParser().parseFromString(text, "text/html").getElementById("live");
    if (found.dataset.version !== at("live").dataset.version) {
      sessionStorage.setItem("open", folds.filter((one) => one.open).map((one) => one.id).join(" "));
      location.reload();
      return;
    }
    at("live").replaceWith(found);
    again(["finished", "stopped"].includes(found.dataset.activity) ? afterEnd : every);
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
  again(every);
})();
