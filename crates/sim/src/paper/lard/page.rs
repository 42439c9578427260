//! The paper as one HTML file that needs nothing else: no network, no script.

use super::shown::{Grid, Paper, ShownExhibit};
use super::text;
use crate::paper::drawing::escape;
use crate::paper::page::{contents, document, pictures, put};

/// The page.
#[must_use]
pub fn html(paper: &Paper) -> String {
    let mut body = format!(
        "<p class=\"sub\">Efficient Support for P-HTTP in Cluster-Based Web Servers (M. Aron, P. Druschel, W. Zwaenepoel: USENIX 1999), \
         simulated with the policies that serve live traffic. weir {}; {}.</p>\n<p class=\"lead\">{}.</p>\n",
        paper.about.version,
        escape(&paper.about_words()),
        escape(&paper.count_words())
    );
    contents(
        paper.exhibits.iter().map(|shown| shown.exhibit.as_str()),
        &mut body,
    );
    for shown in &paper.exhibits {
        exhibit(shown, &mut body);
    }
    document("LARD, made again", &body)
}

fn exhibit(shown: &ShownExhibit, page: &mut String) {
    put(
        page,
        format_args!(
            "<section id=\"{}\"><h2>{}</h2>\n<p>{}</p>\n",
            shown.exhibit,
            escape(shown.exhibit.title()),
            escape(&shown.about)
        ),
    );
    pictures(&shown.pictures, page);
    if !shown.claims.is_empty() {
        claims(shown, page);
    }
    for one in &shown.grids {
        grid(one, page);
    }
    page.push_str("</section>\n");
}

fn claims(shown: &ShownExhibit, page: &mut String) {
    page.push_str(
        "<div class=\"wide\"><table class=\"plain\"><thead><tr><th></th><th scope=\"col\">server</th><th scope=\"col\">kind</th>\
         <th scope=\"col\">ours</th><th scope=\"col\">paper</th><th scope=\"col\">within</th><th scope=\"col\">holds</th></tr></thead><tbody>\n",
    );
    for claim in &shown.claims {
        let class = if claim.holds { "" } else { " class=\"off\"" };
        put(
            page,
            format_args!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td title=\"{}\">{}</td><td>{}</td><td{class}>{}</td></tr>\n",
                escape(claim.what),
                claim.server,
                claim.kind.as_str(),
                text::ours(claim),
                escape(claim.place),
                text::number(claim.published, claim.unit),
                text::within(claim.within),
                text::holds(claim)
            ),
        );
    }
    page.push_str("</tbody></table></div>\n");
}

fn grid(grid: &Grid, page: &mut String) {
    put(
        page,
        format_args!(
            "<div class=\"wide\"><table class=\"plain\"><caption>{}, by {}</caption><thead><tr><th></th>",
            escape(&grid.title),
            escape(&grid.along)
        ),
    );
    for head in &grid.heads {
        put(page, format_args!("<th scope=\"col\">{head}</th>"));
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in &grid.rows {
        put(
            page,
            format_args!("<tr><th scope=\"row\">{}</th>", escape(&row.name)),
        );
        for value in &row.values {
            put(
                page,
                format_args!("<td>{}</td>", text::cell(*value, grid.digits)),
            );
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}
