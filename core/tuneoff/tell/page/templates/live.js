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

  // What the runs print: the server gives text, and it stays text
  const most = 5000; // lines
  const output = { run: at("output-run"), log: at("output-log"), find: at("output-find"), text: at("output-text") };
  const chosen = JSON.parse(sessionStorage.getItem("output") || "{}");
  let turn = 0, lines = [], next = null, later = null;
  const ask = (query) => fetch(`output.json?${new URLSearchParams(query)}`, { cache: "no-store", redirect: "error" }).then(async (answer) => {
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  });
  const fill = (name, options) => {
    output[name].replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    if (options.some(([value]) => value === chosen[name])) output[name].value = chosen[name];
  };
  const say = (text) => { at("output-state").textContent = text; };
  const more = async (mine) => {
    if (mine !== turn || !at("output").open) return;
    clearTimeout(later);
    let wait = every;
    if (!document.hidden && output.log.value) {
      const query = { execution: output.run.value, log: output.log.value, find: output.find.value };
      const answer = await ask(next === null ? query : { ...query, from: next });
      if (mine !== turn) return;
      const { text } = output, isAtEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 8;
      if (answer.lines.length) {
        lines = [...lines, ...answer.lines].slice(-most);
        text.textContent = lines.join("\n");
        if (isAtEnd) text.scrollTop = text.scrollHeight;
      }
      if (answer.next < answer.size && answer.next !== next) wait = 0; // there is more already
      next = answer.next;
      say(`${lines.length === most ? "last " : ""}${lines.length} ${lines.length === 1 ? "line" : "lines"}${output.find.value ? " found" : ""}, ${next} of ${answer.size} bytes`);
    }
    later = setTimeout(() => go(more, mine), wait);
  };
  const go = (step, mine) => step(mine).catch((error) => {
    if (mine !== turn) return;
    say(error.message);
    later = setTimeout(() => go(step, mine), every);
  });
  const again_from_start = (mine) => {
    [lines, next] = [[], null];
    output.text.textContent = "";
    return more(mine);
  };
  const logs = async (mine) => {
    const answer = await ask({ execution: output.run.value });
    if (mine !== turn) return;
    fill("log", answer.logs.map((name) => [name, name]));
    say(answer.logs.length ? "" : "nothing was printed yet");
    await again_from_start(mine);
  };
  const list = async (mine) => {
    const { executions } = await ask({});
    if (mine !== turn) return;
    fill("run", executions);
    if (executions.length) await logs(mine);
    else say("no run has begun");
  };
  const choose = (name, step) => output[name].addEventListener(name === "find" ? "input" : "change", () => {
    chosen[name] = output[name].value;
    sessionStorage.setItem("output", JSON.stringify(chosen));
    go(step, ++turn);
  });
  choose("run", logs);
  choose("log", again_from_start);
  choose("find", again_from_start);
  output.find.value = chosen.find || "";
  output.log.addEventListener("pointerdown", () => {
    ask({ execution: output.run.value }).then((answer) => {
      const have = new Set([...output.log.options].map((option) => option.value));
      output.log.append(...answer.logs.filter((name) => !have.has(name)).map((name) => new Option(name, name)));
    }).catch(() => {});
  });
  at("output").addEventListener("toggle", () => { if (at("output").open) go(list, ++turn); });
  if (at("output").open) go(list, ++turn);

  if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token is a cookie now
  document.addEventListener("visibilitychange", () => { if (!document.hidden) again(0); });
  entitle();
  again(every);
})();
