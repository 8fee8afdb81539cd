// The playground: text, images and videos.
import { href, route } from "../router.ts";
import { Head } from "../ui/parts.tsx";
import { Chat } from "./chat.tsx";
import { Images } from "./images.tsx";
import { Videos } from "./videos.tsx";

const PARTS = [
  { path: "playground", title: "Text", part: Chat },
  { path: "playground/images", title: "Images", part: Images },
  { path: "playground/videos", title: "Videos", part: Videos },
] as const;

export function Playground() {
  const shown = PARTS.find((part) => part.path === route.value) ?? PARTS[0];
  const Part = shown.part;
  return (
    <>
      <Head
        title="Playground"
        actions={
          <nav class="parts" aria-label="Playground">
            {PARTS.map((part) => (
              <a key={part.path} href={href(part.path)} aria-current={part === shown ? "page" : undefined}>
                {part.title}
              </a>
            ))}
          </nav>
        }
      />
      <Part />
    </>
  );
}
